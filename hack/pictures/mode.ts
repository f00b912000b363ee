import { arrow, box, label, type Point, picture } from './drawing.ts';
import { key, TAINT_KEY } from './facts.ts';

const yes = (x: number, y: number) => label(x, y, 'start', { text: 'yes', tone: 'good', bold: true });
const no = (x: number, y: number) => label(x, y, 'start', { text: 'no', tone: 'bad', bold: true });
const down = (x: number, from: number, to: number): Point[] => [
  [x, from],
  [x, to],
];

/** Which mode, as questions. */
export function mode(): string {
  return picture(
    960,
    450,
    'Which placement.mode: four questions, and the mode that each answer leads to',
    box(20, 20, 420, 66, 'accent', 'Does your provider taint its Arm nodes itself?', 'GKE, and ACK for virtual nodes'),
    box(560, 20, 380, 66, 'good', 'mode taints', `with ${key('taints.manage')}: false (overlay provider-taints)`),
    arrow([
      [440, 53],
      [556, 53],
    ]),
    yes(484, 46),
    arrow(down(230, 86, 126)),
    no(240, 112),
    box(
      20,
      130,
      420,
      66,
      'accent',
      'Does an autoscaler make nodes?',
      'Karpenter, EKS Auto Mode, AKS, Cluster Autoscaler',
    ),
    arrow(down(230, 196, 236)),
    yes(240, 222),
    arrow([
      [440, 163],
      [556, 163],
    ]),
    no(484, 156),
    box(560, 130, 380, 66, 'accent', 'Do you want to prefer an architecture,', {
      text: 'or to have no taints at all?',
      bold: true,
    }),
    arrow([
      [790, 196],
      [790, 236],
    ]),
    no(800, 222),
    box(
      640,
      240,
      300,
      86,
      'good',
      'mode taints',
      'the default; before Kubernetes 1.36',
      'the webhook guards DaemonSets',
    ),
    arrow([
      [600, 196],
      [600, 273],
      [444, 273],
    ]),
    yes(560, 250),
    box(20, 240, 420, 66, 'accent', 'Must no pod reach a wrong node,', {
      text: 'even while archaware is down?',
      bold: true,
    }),
    arrow(down(90, 306, 366)),
    no(100, 340),
    arrow(down(330, 306, 366)),
    yes(340, 340),
    box(20, 370, 200, 60, 'good', 'mode affinity', 'with the webhook'),
    box(240, 370, 420, 60, 'good', 'mode both', `with the webhook; autoscaled pools need ${TAINT_KEY}`),
  );
}
