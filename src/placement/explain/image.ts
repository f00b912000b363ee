import type { Platform } from '../../kit/platform.ts';
import { whatNames } from '../decide.ts';
import type { SkipReason } from '../eligibility.ts';
import type { NarrowedImage } from '../images.ts';
import type { PodImage } from '../objects/image.ts';
import type { ExplainedImage } from './explanation.ts';
import type { Findings } from './input.ts';

/** Explains one of a template's images. `narrowed`: how the images narrow the architectures; empty if they were not examined. */
export function explainImage(
  image: PodImage,
  narrowed: readonly NarrowedImage[],
  skipped: SkipReason | undefined,
  { lookupOf }: Findings,
): ExplainedImage {
  const base = { ...whatNames(image), platforms: [], skipped: [] };
  const said = narrowed.find((entry) => entry.image === image)?.said;
  if (said === undefined) return { ...base, notAsked: skipped === undefined ? 'statement' : 'left-alone' };
  if (said.kind === 'not-asked') return { ...base, notAsked: 'never-pulled' };
  if (said.kind === 'set' && said.by === 'override') {
    return { ...base, notAsked: 'override', platforms: said.platforms.map(platformOf) };
  }
  if (said.kind === 'failed' && image.isSurplus) {
    return { ...base, error: { code: said.code, message: said.message, registry: said.registry } };
  }
  const found = lookupOf(image);
  if (found === undefined) return base;
  if (!('error' in found)) {
    const { isIndex: _isIndex, ...rest } = found;
    return { ...base, ...rest, ...(said.kind === 'anywhere' ? { anywhere: said.as } : {}) };
  }
  return said.kind === 'anywhere' ? { ...base, anywhere: said.as } : { ...base, error: found.error };
}

function platformOf(text: string): Platform {
  const [os = '', architecture = ''] = text.split('/');
  return { os, architecture };
}
