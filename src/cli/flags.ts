import type { Flag } from './command.ts';

/** The flags that several commands have, with kubectl's names. */
export const NAMESPACE: Flag = {
  name: 'namespace',
  letter: 'n',
  value: 'NAME',
  text: 'Namespace; default: the one of the context',
};
export const ALL_NAMESPACES: Flag = { name: 'all-namespaces', letter: 'A', text: 'All namespaces' };
export const SELECTOR: Flag = {
  name: 'selector',
  letter: 'l',
  value: 'LABELS',
  text: 'Only objects with these labels: app=web,tier!=db',
};
/** For the commands that read the configuration of the installation. */
export const INSTALLATION: Flag = {
  name: 'installation',
  value: 'NAMESPACE',
  text: 'Namespace of archaware, if there are several installations, or if you may not list ClusterRoleBindings',
};
