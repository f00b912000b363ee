import { describeAdmission } from './admission.ts';
import { describeClean } from './clean.ts';
import type { Start } from './context.ts';
import { describeExplain } from './explain.ts';
import { describeObserve } from './observe.ts';
import { describeReload } from './reload.ts';
import { describeReport } from './report.ts';
import { describeStatus } from './status.ts';
import { describeWrongNode } from './wrong-node.ts';

/** Describes what users see of the program. The suites run in process and on the real control plane. */
export function describeProgram(where: string, start: Start): void {
  describe(`the program, ${where}`, () => {
    describeAdmission(start);
    describeClean(start);
    describeExplain(start);
    describeObserve(start);
    describeReload(start);
    describeReport(start);
    describeStatus(start);
    describeWrongNode(start);
  });
}
