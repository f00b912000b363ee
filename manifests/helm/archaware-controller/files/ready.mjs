// What `helm test` runs: asks a replica whether it is ready, for a minute at most; its Service was made a moment ago.
const url = process.env.READY_URL;
const end = Date.now() + 60_000;
for (;;) {
  const said = await fetch(url, { signal: AbortSignal.timeout(5_000) }).then(
    async (response) => `${response.status} ${(await response.text()).trim()}`,
    (error) => String(error.cause ?? error),
  );
  console.log(`${url}: ${said}`);
  if (said.startsWith('200 ')) break;
  if (Date.now() > end) process.exit(1);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
}
