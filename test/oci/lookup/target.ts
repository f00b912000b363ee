import { type Target, targetOf } from '../../../src/oci/lookup/health.ts';
import { parseReference } from '../../../src/oci/reference.ts';

/** An image at its own registry. */
export function targetFor(image: string): Target {
  const reference = parseReference(image);
  const { endpoint: host, repository, name } = reference;
  return targetOf(
    {
      name: host,
      host,
      base: `https://${host}/v2`,
      repository,
      credentialName: name,
      isSource: true,
      query: '',
      policy: 'registry',
      headers: {},
      resolvesTags: true,
    },
    reference,
  );
}
