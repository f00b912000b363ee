import { arrow, box, label, picture } from './drawing.ts';
import { event, FALLBACK_AFTER, key } from './facts.ts';

/** The questions that archaware asks about a pod. */
export function decision(): string {
  const x = 20;
  const question = (y: number, ...lines: string[]) => box(x, y, 400, 66, 'accent', ...lines);
  const down = (y: number, answer: string) => [
    arrow([
      [220, y],
      [220, y + 40],
    ]),
    label(230, y + 26, 'start', { text: answer, bold: true }),
  ];
  const right = (y: number, answer: string) => [
    arrow([
      [420, y],
      [516, y],
    ]),
    label(468, y - 8, 'middle', { text: answer, bold: true }),
  ];
  return picture(
    960,
    520,
    'The questions that archaware asks about a pod, and what follows from each answer',
    question(20, 'Is the pod excluded or ignored?', 'its namespace, or the label archaware.dev/ignore'),
    ...right(53, 'yes'),
    box(520, 20, 420, 66, 'plain', 'left alone', 'on tainted nodes it needs a toleration of its own'),
    ...down(86, 'no'),
    question(130, 'Does it state its architectures?', 'annotation archaware.dev/architectures'),
    ...right(163, 'yes'),
    box(520, 130, 420, 66, 'good', 'placed on these', 'no registry is asked'),
    ...down(196, 'no'),
    question(240, 'Are all of its images known?', 'the registries answer'),
    ...right(273, 'no'),
    box(
      520,
      240,
      420,
      86,
      'warn',
      'waits, and archaware tries again',
      `after ${FALLBACK_AFTER}: placed where its other images allow it`,
      `(${key('images.unresolvable')}: open); ${event('OpenPlacement')}`,
    ),
    ...down(306, 'yes'),
    question(350, 'Do they have an architecture in common,', 'within architectures.schedulable?'),
    ...right(383, 'no'),
    box(520, 350, 420, 66, 'bad', 'held', `${event('NoCommonArchitecture')} lists each image`),
    ...down(416, 'yes'),
    box(x, 460, 400, 46, 'good', 'placed on the architectures in common'),
  );
}
