import { type Endpoint, type EndpointTarget, labelOf, repositoryUrl } from '../endpoints/endpoint.ts';
import { ImageError } from '../errors.ts';
import type { Reference } from '../reference.ts';

/** A repository, a project or a host: `key` equals that of no other one, and `name` is for messages. */
type Part = { readonly key: string; readonly name: string };

/**
 * Where an image is requested, from narrow to wide. Many registries are behind one host (projects and proxy caches of
 * Harbor, Artifactory or GitLab), so what one repository answers says little about the others.
 */
export type Place = {
  readonly repository: Part;
  /** The first component of the repository's path: `library` of `library/nginx`, `hub` behind a mirror's path `/hub`. */
  readonly project: Part;
  readonly host: Part;
};

/** An image at one of its endpoints, and its place there. */
export type Target = EndpointTarget & { readonly place: Place };

/** @throws ImageError if the image must not be requested there */
export function targetOf(endpoint: Endpoint, reference: Reference): Target {
  const target = { endpoint, reference };
  if (endpoint.refusal !== undefined) {
    throw new ImageError(endpoint.refusal, { code: 'forbidden-address', endpoint: labelOf(target) });
  }
  const { base, host, query, repository } = endpoint;
  const project = repository.split('/', 1)[0] ?? repository;
  const place = {
    // The query names to a mirror the registry that it stands for. Each of these may fail alone.
    repository: { key: `repository ${repositoryUrl(endpoint)}${query}`, name: repository },
    project: { key: `project ${base} ${project}${query}`, name: project },
    host: { key: hostKey(host), name: labelOf(target) },
  };
  return { ...target, place };
}

/** Returns the key of a host[:port]. */
export function hostKey(host: string): string {
  return `host ${host}`;
}
