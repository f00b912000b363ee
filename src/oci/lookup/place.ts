import { type EndpointTarget, labelOf, repositoryUrl } from '../endpoints/endpoint.ts';

/** A repository, a project or a host: `key` equals that of no other one, and `name` is for messages. */
export type Part = { readonly key: string; readonly name: string };

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

/** Returns the place of an image at an endpoint. */
export function placeOf(target: EndpointTarget): Place {
  const { base, host, query, repository } = target.endpoint;
  const project = repository.split('/', 1)[0] ?? repository;
  return {
    // The query names to a mirror the registry that it stands for. Each of these may fail alone.
    repository: { key: `repository ${repositoryUrl(target)}${query}`, name: repository },
    project: { key: `project ${base} ${project}${query}`, name: project },
    host: { key: `host ${host}`, name: labelOf(target) },
  };
}
