import { arrow, box, label, picture } from './drawing.ts';
import { event, FALLBACK_AFTER, LABEL, TAINT_KEY } from './facts.ts';

/** From what a Pending pod shows to what it means. */
export function pending(): string {
  const rows: [y: number, message: string[], cause: string[]][] = [
    [
      70,
      ['SchedulingGated'],
      ['Its images are being looked up.', 'If this lasts for minutes: see the Events of the pod, and the Lease.'],
    ],
    [
      156,
      ['untolerated taint', `{${TAINT_KEY}: …} on all nodes`],
      ['All new pods: no replica leads.', 'One namespace: excluded or ignored. One pod: see its Events.'],
    ],
    [
      242,
      ['untolerated taint', `{${TAINT_KEY}: …} on some nodes`],
      [
        'This is right: its image does not run on those nodes.',
        'The rest of the message says what the other nodes lack.',
      ],
    ],
    [
      328,
      ['didn’t match Pod’s node', 'affinity/selector'],
      [`It requires a label that no node has, or ${LABEL}`, 'of an architecture that its image lacks.'],
    ],
    [414, ['Insufficient cpu, memory, …'], ['The nodes of its architectures are full. This is not about archaware.']],
  ];
  return picture(
    960,
    640,
    'Why a pod is Pending: what the scheduler or the pod shows, and what it means',
    label(34, 44, 'start', { text: 'kubectl describe pod shows', bold: true }),
    label(400, 44, 'start', { text: 'which means', bold: true }),
    ...rows.flatMap(([y, message, cause]) => [
      box(20, y, 300, 66, 'plain', ...message.map((text) => ({ text, mono: true }))),
      arrow([
        [320, y + 33],
        [380, y + 33],
      ]),
      box(384, y, 556, 66, 'accent', ...cause.map((text) => ({ text }))),
    ]),
    label(34, 520, 'start', { text: 'Events on the pod', bold: true }),
    box(20, 540, 300, 80, 'bad', event('NoCommonArchitecture'), 'held until its images share', 'an architecture'),
    box(
      340,
      540,
      300,
      80,
      'warn',
      event('ImageUnresolvable'),
      `waits ${FALLBACK_AFTER} at most by default,`,
      'then may go to all nodes',
    ),
    box(660, 540, 280, 80, 'plain', 'neither', 'explain NAMESPACE/POD', 'says why and what to do'),
  );
}
