import { expect } from 'chai';
import { createRoutes } from '../../../src/oci/endpoints/mirrors.ts';
import { type Target, targetOf } from '../../../src/oci/lookup/health.ts';
import { parseReference } from '../../../src/oci/reference.ts';

const { endpointsOf } = createRoutes({ mirrors: {}, insecure: [], hosts: () => undefined });

/** An image at its own registry. */
export function targetFor(image: string): Target {
  const reference = parseReference(image);
  return targetOf(endpointsOf(reference)[0] ?? expect.fail(image), reference);
}
