/** Runs `act` for every item, at most `atOnce` at a time; fails with the first failure. */
export async function inParallel<Item>(
  items: readonly Item[],
  atOnce: number,
  act: (item: Item) => Promise<unknown>,
): Promise<void> {
  const waiting = items.values();
  const lane = async (): Promise<void> => {
    for (const item of waiting) await act(item);
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}
