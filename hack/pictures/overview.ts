import { arrow, box, cross, label, line, picture } from './drawing.ts';
import { taint } from './facts.ts';

/** The idea, for those who see it for the first time. */
export function overview(): string {
  return picture(
    960,
    470,
    'How archaware places pods: nodes are tainted with their architecture, pods tolerate what their images support',
    box(320, 20, 320, 66, 'plain', 'registries', 'asked for manifests; no image is pulled'),
    box(
      340,
      160,
      280,
      112,
      'accent',
      'archaware-controller',
      'reads which architectures all images',
      'of a pod have in common,',
      'and each node’s own architecture',
    ),
    box(20, 130, 220, 88, 'plain', 'pod web', 'images: amd64 and arm64', {
      text: 'tolerates amd64, arm64',
      tone: 'good',
    }),
    box(20, 260, 220, 88, 'plain', 'pod legacy', 'image: amd64 only', { text: 'tolerates amd64', tone: 'good' }),
    box(
      684,
      130,
      256,
      88,
      'plain',
      'node amd64-1',
      { text: taint('amd64'), mono: true },
      { text: 'takes web and legacy', tone: 'good' },
    ),
    box(
      684,
      260,
      256,
      88,
      'plain',
      'node arm64-1',
      { text: taint('arm64'), mono: true },
      { text: 'takes web', tone: 'good' },
    ),
    arrow([
      [480, 160],
      [480, 90],
    ]),
    label(490, 130, 'start', { text: 'which platforms?', tone: 'plain' }),
    arrow([
      [340, 200],
      [244, 178],
    ]),
    arrow([
      [340, 254],
      [244, 296],
    ]),
    label(290, 174, 'middle', { text: 'tolerations', tone: 'plain' }),
    label(302, 308, 'middle', { text: 'tolerations', tone: 'plain' }),
    arrow([
      [620, 200],
      [680, 178],
    ]),
    arrow([
      [620, 254],
      [680, 296],
    ]),
    label(654, 172, 'middle', { text: 'taint', tone: 'plain' }),
    label(644, 304, 'middle', { text: 'taint', tone: 'plain' }),
    line(
      [
        [130, 348],
        [130, 400],
        [460, 400],
      ],
      'bad',
      'dashed',
    ),
    cross(480, 400),
    line(
      [
        [500, 400],
        [820, 400],
        [820, 348],
      ],
      'bad',
      'dashed',
    ),
    label(480, 440, 'middle', {
      text: 'the scheduler never puts legacy on arm64-1: no “exec format error”',
      tone: 'bad',
    }),
  );
}
