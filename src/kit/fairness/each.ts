/** Calls `act` for each item, a number of them at a time. Throws the first error; items that have begun go on. */
export async function each<T>(items: readonly T[], atOnce: number, act: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values();
  const work = async () => {
    for (const item of queue) await act(item);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}
