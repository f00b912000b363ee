import { arrow, box, label, picture } from './drawing.ts';
import { event, FALLBACK_AFTER, GATE, key, LABEL } from './facts.ts';

/** The time line of a pod whose images nobody knows yet, and what happens where something fails. */
export function gatedPod(): string {
  return picture(
    960,
    520,
    'The life of a gated pod: created, gated, images looked up, released in one patch, scheduled; and what happens at each failure',
    label(20, 34, 'start', { text: 'With the webhook: a pod whose images are not known yet', bold: true }),
    box(20, 52, 160, 96, 'plain', '1 created', 'the API server', 'asks the webhook'),
    box(212, 52, 176, 96, 'accent', '2 gated', 'no scheduler and', 'no autoscaler', 'looks at the pod'),
    box(420, 52, 160, 96, 'accent', '3 looked up', 'the controller asks', 'the registries'),
    box(612, 52, 176, 96, 'accent', '4 released', 'in one patch: affinity,', 'tolerations, and', 'no gate any more'),
    box(820, 52, 120, 96, 'good', '5 scheduled', 'on a node', 'that fits'),
    ...[180, 388, 580, 788].map((x) =>
      arrow([
        [x, 100],
        [x + 30, 100],
      ]),
    ),
    label(300, 168, 'middle', { text: GATE, mono: true, tone: 'plain' }),
    label(700, 168, 'middle', { text: `${LABEL} In [amd64, arm64]`, mono: true, tone: 'plain' }),
    label(116, 206, 'start', { text: 'What else can happen', bold: true }),
    ...[100, 500].map((x) =>
      arrow(
        [
          [x, 150],
          [x, 236],
        ],
        'plain',
        'dashed',
      ),
    ),
    ...[300, 700].map((x) =>
      arrow(
        [
          [x, 178],
          [x, 236],
        ],
        'plain',
        'dashed',
      ),
    ),
    box(20, 240, 176, 116, 'warn', 'webhook down', 'the pod passes', 'without a gate; on', 'tainted nodes it waits'),
    box(212, 240, 192, 116, 'warn', 'leader gone', 'the next leader', 'releases the pod; until', 'then no new gates'),
    box(
      420,
      240,
      208,
      116,
      'warn',
      'registry does not answer',
      `after ${FALLBACK_AFTER}: released for`,
      'all possible architectures;',
      event('OpenPlacement'),
    ),
    box(
      644,
      240,
      296,
      116,
      'warn',
      'API server refuses the patch',
      'the gate stays,',
      'the controller tries again;',
      event('WriteRefused'),
    ),
    box(20, 380, 384, 116, 'good', 'all images known at creation', 'placed at once: never a gate, no second write'),
    box(
      420,
      380,
      520,
      116,
      'bad',
      'nothing in common',
      'the gate stays, until the images change;',
      `${event('NoCommonArchitecture')} lists each image`,
      `(with ${key('placement.noCommonArchitecture')}: hold, the default)`,
    ),
  );
}
