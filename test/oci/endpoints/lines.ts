import type { Endpoint } from '../../../src/oci/endpoints/endpoint.ts';

/**
 * The endpoints on one line: base (`~`: a mirror; https, where nothing else is said), repository, query, and what is unusual: the name
 * for credentials where it is not that of the place itself, the policy for addresses where a mirror's is not `configured` and a source's not `registry`.
 */
export function lines(endpoints: readonly Endpoint[]): string {
  const texts = endpoints.map((endpoint) => {
    const { base, repository, query, credentialName, isSource, policy, trust } = endpoint;
    const place = `${base.replace(/^https?:\/\//, '').replace(/\/v2(?=\/|$)/, '')}/${repository}`;
    return [
      ...[`${isSource ? '' : '~'}${base.replace('https://', '')}`, repository, query],
      credentialName === place ? '' : `as ${credentialName}`,
      policy === (isSource ? 'registry' : 'configured') ? '' : policy,
      trust?.id ?? '',
      endpoint.resolvesTags ? '' : 'digests',
      endpoint.refusal ?? '',
    ]
      .filter((part) => part !== '')
      .join(' ');
  });
  return texts.join(' | ');
}
