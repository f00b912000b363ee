import { APP_LABEL, DEPLOYMENT, FIELD_MANAGER } from '../../names.ts';
import { few } from '../../placement/reasons.ts';
import { type Facts, hasLeader, isGuess, metricsOf, type Replica, readValue } from './facts.ts';
import { TROUBLES, type TroubleReason } from './troubles.ts';

/** Something that is wrong, and what to do about it. */
export type Problem = { readonly problem: string; readonly do: string };

/** A pod that waits for longer is a problem, as for the alert ArchawarePodsWaiting. */
const LONG_WAIT_MS = 10 * 60_000;
/** A gate is removed within seconds once the images are known, as for the alert ArchawareGatedPods. */
const LONG_GATE_MS = 5 * 60_000;
/** A certificate is renewed long before. */
const EXPIRES_SOON_SECONDS = 7 * 86_400;

const MOST_TROUBLES = 10;

/** Returns the problems, the worst first. Facts that could not be read are no problem. */
export function problemsOf(facts: Facts): Problem[] {
  if (isMissing(facts)) return notInstalled(facts);
  return [
    ...ofDeployment(facts),
    ...ofLeader(facts),
    ...ofReplicas(facts),
    ...ofNodes(facts),
    ...ofGuard(facts),
    ...ofTroubles(facts),
    ...ofDaemonSets(facts),
    ...ofPods(facts),
    ...ofWebhook(facts),
    ...ofPools(facts),
  ];
}

/** Whether nothing of the controller was found. A controller may run outside of the cluster; then its Lease is held. */
export function isMissing(facts: Facts): boolean {
  const { deployment, replicas } = facts;
  if (deployment.kind === 'unread' || replicas.kind === 'unread') return false;
  return deployment.value === undefined && replicas.value.length === 0 && hasLeader(facts) !== true;
}

function when(isWrong: boolean, problem: string, advice: string): Problem[] {
  return isWrong ? [{ problem, do: advice }] : [];
}

function notInstalled({ nodes, taint, installation }: Facts): Problem[] {
  const tainted = (readValue(nodes)?.counts ?? []).reduce((sum, count) => sum + count.tainted, 0);
  const missing = `archaware is not installed: there is no Deployment ${installation}, and nobody holds its Lease`;
  const have = tainted === 1 ? 'has' : 'have';
  return [
    { problem: missing, do: 'install it (docs/install.md), or name the Deployment with --installation NAMESPACE/NAME' },
    ...when(
      tainted > 0,
      `${nodesText(tainted)} still ${have} the taint ${taint}: new pods stay Pending there`,
      'install archaware again, or run archaware-controller clean',
    ),
  ];
}

function ofDeployment({ deployment, replicas }: Facts): Problem[] {
  const troubles = (readValue(replicas) ?? []).flatMap(({ ready, trouble }) =>
    ready || trouble === '' ? [] : trouble,
  );
  const why = few([...new Set(troubles)], '; ');
  const found = readValue(deployment);
  if (found === undefined) return [];
  const { namespace, name, wanted, ready } = found;
  return [
    ...when(
      wanted === 0,
      `Deployment ${namespace}/${name} is scaled to 0`,
      `kubectl -n ${namespace} scale deployment/${name} --replicas=2`,
    ),
    ...when(
      ready < wanted,
      `${ready} of ${wanted} replicas of Deployment ${namespace}/${name} are ready${why === '' ? '' : `: ${why}`}`,
      `kubectl -n ${namespace} describe pods -l ${APP_LABEL}=${DEPLOYMENT}`,
    ),
  ];
}

function ofLeader(facts: Facts): Problem[] {
  if (hasLeader(facts) !== false) return [];
  const lease = readValue(facts.lease);
  const why =
    lease === undefined
      ? `there is no Lease ${facts.leaseName}`
      : lease.holder === ''
        ? `nobody holds the Lease ${facts.leaseName}`
        : `${lease.holder} has not renewed the Lease ${facts.leaseName} for ${Math.round(lease.ageMs / 1000)} s`;
  const [namespace = ''] = facts.leaseName.split('/');
  return [
    {
      problem: `no replica leads: ${why}`,
      do:
        `kubectl -n ${namespace} get deployment,pods shows whether replicas run, and their log why none leads; scale them up, or ` +
        `kubectl -n ${namespace} rollout restart deployment -l ${APP_LABEL}=${DEPLOYMENT} (docs/runbooks/no-leader.md)`,
    },
  ];
}

function ofReplicas({ replicas, leaseName }: Facts): Problem[] {
  const [namespace = ''] = leaseName.split('/');
  const all = readValue(replicas) ?? [];
  const refusing = all.filter(({ metrics }) => readValue(metrics)?.configurationInUse === false);
  const versions = [...new Set(metricsOf(replicas).flatMap(({ version }) => version ?? []))].sort();
  return [
    ...refusing.map(({ name }: Replica) => ({
      problem: `${name} refused the changed configuration file and uses the last valid one`,
      do: `kubectl -n ${namespace} logs ${name} says which line is wrong; correct the ConfigMap`,
    })),
    ...when(
      versions.length > 1,
      `the replicas run different versions: ${versions.join(', ')}`,
      `kubectl -n ${namespace} rollout status deployment -l ${APP_LABEL}=${DEPLOYMENT}`,
    ),
  ];
}

function ofNodes(facts: Facts): Problem[] {
  // Which taint a node lacks is not known without the configuration.
  if (isGuess(facts)) return [];
  const { nodes, taint } = facts;
  const { lacking = [], unmanaged = [] } = readValue(nodes) ?? {};
  return [
    ...when(
      lacking.length > 0,
      `${nodesText(lacking.length)} without the taint ${taint}: ${few(lacking)}`,
      untaintedAdvice(facts),
    ),
    ...when(
      unmanaged.length > 0,
      `${nodesText(unmanaged.length)} with a taint of archaware that this configuration does not manage: ${few(unmanaged)}`,
      'let the loop for nodes run again (loops, withoutTaints), or remove them with clean --stop (docs/changing-modes.md, "Stranded taints")',
    ),
  ];
}

function ofGuard({ guard, replicas }: Facts): Problem[] {
  const verdict = readValue(guard);
  // The leader may have tried what these credentials may not try.
  const isKnown = verdict !== undefined && verdict.kind !== 'unknown';
  const isBroken = isKnown
    ? verdict.kind === 'broken'
    : metricsOf(replicas).some(({ leads, keepsDaemonSets }) => leads && keepsDaemonSets === false);
  const tried = verdict?.kind === 'broken' ? `a dry run with ${verdict.example}` : 'a dry run of the leader';
  return when(
    isBroken,
    `an update that drops archaware's tolerations from a DaemonSet is not corrected, by ${tried}: helm upgrade or a GitOps tool can so remove all of its pods from tainted nodes`,
    'apply the manifests again, or run helm upgrade, so that the policy archaware-keep or the webhook corrects it (docs/runbooks/daemonsets-unprotected.md)',
  );
}

/** Says why nodes have no taint: what the Events about them say, else what the usual reasons are. */
function untaintedAdvice({ troubles, taint }: Facts): string {
  const said = (readValue(troubles) ?? []).filter(({ kind }) => kind === 'Node');
  const contested = said.filter(({ reason }) => reason === 'WriteContested').map(({ name }) => name);
  const [first] = said;
  if (contested.length > 0) {
    return `another writer takes the taint off ${few(contested)} again: set ${taint} where that writer gets its taints from (the node pool of a provider), or leave such nodes out with taints.nodeSelector; archaware tries again after ten minutes, and then less and less often, up to a day`;
  }
  if (first !== undefined)
    return `${TROUBLES[first.reason]}; Event ${first.reason} of node ${first.name}: ${first.note}`;
  return 'after an installation, wait for bootstrap.timeout; then look for "not reconciled" in the log of the leader, and for its Events (kubectl get events -A --field-selector reportingComponent=archaware-controller)';
}

/** What Events about objects other than nodes say: each reason of an object is a problem. */
function ofTroubles({ troubles }: Facts): Problem[] {
  const all = (readValue(troubles) ?? []).filter(({ kind }) => kind !== 'Node');
  const shown = all.slice(0, MOST_TROUBLES).map(({ kind, namespace, name, reason, note }) => ({
    problem: `${kind} ${namespace}/${name}: ${reason}: ${note}`,
    do: TROUBLES[reason],
  }));
  const more = when(
    all.length > shown.length,
    `${all.length - shown.length} more objects with such an Event`,
    `kubectl get events -A --field-selector reportingComponent=${FIELD_MANAGER}`,
  );
  return [...shown, ...more];
}

/** What only the leader's metrics say: where the Events can be read, they name the DaemonSets. */
function ofDaemonSets({ replicas, troubles }: Facts): Problem[] {
  const named = (reason: TroubleReason) =>
    (readValue(troubles) ?? []).filter((one) => one.kind === 'DaemonSet' && one.reason === reason).length;
  const metrics = metricsOf(replicas).filter(({ leads }) => leads);
  const stopped = Math.max(0, ...metrics.map(({ rolloutStopped }) => rolloutStopped));
  const heldBack = Math.max(0, ...metrics.map(({ taintsHeldBack }) => taintsHeldBack));
  return [
    ...when(
      stopped > named('RolloutStopped'),
      `${stopped} ${stopped === 1 ? 'DaemonSet is' : 'DaemonSets are'} not back after archaware changed the template; others wait`,
      `kubectl get events -A --field-selector reason=RolloutStopped names them; ${TROUBLES.RolloutStopped}`,
    ),
    ...when(
      heldBack > 0 && named('TaintHeldBack') === 0,
      `${nodesText(heldBack)} ${heldBack === 1 ? 'stays' : 'stay'} untainted: a DaemonSet that runs there cannot be given its tolerations`,
      `kubectl get events -A --field-selector reason=TaintHeldBack names it; ${TROUBLES.TaintHeldBack}`,
    ),
  ];
}

function ofPods({ waiting, replicas, troubles }: Facts): Problem[] {
  const [oldest] = readValue(waiting)?.oldest ?? [];
  const metrics = metricsOf(replicas).filter(({ leads }) => leads);
  const wrong = Math.max(0, ...metrics.map(({ wrongNodePods }) => wrongNodePods));
  const contested = Math.max(0, ...metrics.map(({ contestedObjects }) => contestedObjects));
  return [
    ...(oldest === undefined
      ? []
      : when(
          oldest.ageMs > (oldest.gated ? LONG_GATE_MS : LONG_WAIT_MS),
          `pod ${oldest.namespace}/${oldest.name} has waited for ${Math.floor(oldest.ageMs / 60_000)} minutes`,
          `archaware-controller explain -n ${oldest.namespace} ${oldest.name}`,
        )),
    ...when(
      wrong > 0,
      `${wrong} ${wrong === 1 ? 'pod does' : 'pods do'} not run on ${wrong === 1 ? 'its node' : 'their nodes'}`,
      'kubectl get events -A --field-selector reason=WrongNode',
    ),
    // The Events say which objects.
    ...when(
      contested > (readValue(troubles) ?? []).filter(({ reason }) => reason === 'WriteContested').length,
      `another writer keeps undoing the writes to ${contested} ${contested === 1 ? 'object' : 'objects'}`,
      'kubectl get events -A --field-selector reason=WriteContested',
    ),
  ];
}

function ofWebhook({ webhook, webhookConfiguration, replicas }: Facts): Problem[] {
  const soonest = Math.min(
    ...metricsOf(replicas).map(({ certificateExpirySeconds = Number.POSITIVE_INFINITY }) => certificateExpirySeconds),
  );
  return [
    ...when(
      webhook.state === 'not-reached',
      webhook.why,
      readValue(webhookConfiguration) === false
        ? 'apply the manifest of the webhook again, or run helm upgrade (docs/admission.md)'
        : 'let the API server reach the port of the webhook (TCP 9443 by default), and check the certificate (docs/operating.md, "admission reviews stay at 0")',
    ),
    ...when(
      soonest < EXPIRES_SOON_SECONDS,
      `the certificate of the webhook expires in ${Math.max(0, Math.floor(soonest / 3600))} hours`,
      'docs/admission.md; the log of the leader says why it was not renewed',
    ),
  ];
}

function ofPools({ pools }: Facts): Problem[] {
  return (readValue(pools) ?? []).map(({ kind, name, note }) => ({
    problem: `${kind} ${name} ${note}`,
    do: 'docs/autoscalers.md',
  }));
}

function nodesText(count: number): string {
  return `${count} ${count === 1 ? 'node' : 'nodes'}`;
}
