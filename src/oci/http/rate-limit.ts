import type { RateLimit } from '../resolver-telemetry.ts';
import type { Link, RegistryResponse } from './transport.ts';

/** Parses `ratelimit-limit` and `ratelimit-remaining`, each `100` or `100;w=21600`. Undefined unless both are there and are numbers. */
export function parseRateLimit(headers: RegistryResponse['headers']): Omit<RateLimit, 'registry'> | undefined {
  const [limit = '', remaining = ''] = ['ratelimit-limit', 'ratelimit-remaining'].map((name) => headers[name]);
  const [one, other] = [limit, remaining].map((text) => /^\s*(\d{1,9})\s*(?:;|$)/.exec(text)?.[1]);
  if (one === undefined || other === undefined) return undefined;
  const window = /;\s*w=(\d{1,9})\s*(?:;|$)/.exec(remaining)?.[1];
  return { limit: Number(one), remaining: Number(other), ...(window && { windowSeconds: Number(window) }) };
}

/**
 * Reports the limit from each answer about a manifest that the registry itself gives, not a host to which it redirects.
 */
export function reportRateLimit(report: (rateLimit: RateLimit) => void, redirects: Link): Link {
  return (request, next) =>
    redirects(request, async (hop) => {
      const response = await next(hop);
      const isAbout = hop.url.origin === request.url.origin && hop.url.pathname.includes('/manifests/');
      const found = isAbout ? parseRateLimit(response.headers) : undefined;
      if (found !== undefined) {
        request.onRateLimit?.(found);
        report({ registry: request.registry, ...found });
      }
      return response;
    });
}
