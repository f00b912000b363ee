import { expect } from 'chai';
import type { WriteResult } from '../../src/kube/writer.ts';

type Arranged = {
  put(): void;
  run(): Promise<object>;
  readonly world: { refusal: Exclude<WriteResult, { kind: 'written' }> | Error | undefined };
  readonly decided: readonly string[];
  readonly controller: { readonly states: ReadonlyMap<string, { readonly decision?: unknown }> };
};

/** Describes what a controller makes of a write that was not carried out, for the object with this key. */
export function describeEndsOfWrites(key: string, arrange: () => Arranged): void {
  const rows: [kind: 'conflict' | 'gone' | 'recorded', outcome: string, isDecided: boolean, isRemembered: boolean][] = [
    ['conflict', 'conflict', false, false],
    ['gone', 'unchanged', true, false],
    ['recorded', 'written', true, true],
  ];
  for (const [kind, outcome, isDecided, isRemembered] of rows) {
    it(`has the outcome ${outcome} if the write ends with ${kind}`, async () => {
      const { put, run, world, decided, controller } = arrange();
      world.refusal = { kind };
      put();
      expect(await run()).to.include({ outcome });
      expect(decided.length > 0).to.equal(isDecided);
      expect(controller.states.get(key)?.decision !== undefined).to.equal(isRemembered);
    });
  }
}
