/** Runs a part of a smoke test and prints how long it took. */
export async function step(what: string, run: () => Promise<void>): Promise<void> {
  const begun = performance.now();
  await run();
  console.log(`${String(Math.round(performance.now() - begun)).padStart(6)} ms  ${what}`);
}
