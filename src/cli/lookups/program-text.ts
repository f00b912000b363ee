import type { Inside } from '../../oci/deep/look-inside.ts';
import { platformText } from '../output.ts';

/** `declares linux/arm64, /usr/bin/app is x86-64`. */
export function insideText({ platform, program, machine }: Inside): string {
  const declared = `declares ${platformText(platform)}`;
  return program === undefined || machine === undefined ? declared : `${declared}, ${program} is ${machine}`;
}

/** `12.3 MiB`; for people. */
export function bytesText(bytes: number): string {
  const [size, unit] = bytes < 1024 * 1024 ? [bytes / 1024, 'KiB'] : [bytes / 1024 / 1024, 'MiB'];
  return `${size.toFixed(1)} ${unit}`;
}
