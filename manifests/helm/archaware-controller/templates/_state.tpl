{{/* The values that templates decide by: the configuration as given and with defaults, and what follows from it. Fails on values that contradict each other. */}}
{{- define "archaware.state" -}}
{{- $given := include "archaware.given" . | fromJson -}}
{{- $config := include "archaware.effective" (dict "root" . "given" $given) | fromJson -}}
{{- $mode := $config.placement.mode -}}
{{- $tolerates := has $mode (list "taints" "both") -}}
{{- /* Nothing is written: rights to read, and none of the objects that are for writes. */ -}}
{{- $observes := eq $mode "observe" -}}
{{- $pods := has "pods" $config.loops -}}
{{- $daemonSets := has "daemonsets" $config.loops -}}
{{- $labels := and (not $observes) (has "labels" $config.loops) (not (empty $config.nodeLabels.directory)) -}}
{{- $taint := printf "%s:%s" $config.taints.key $config.taints.effect -}}
{{- /* In a mode without taints these loops remove what an earlier mode left. */ -}}
{{- $undoes := and (eq $mode "affinity") (or (has "nodes" $config.loops) $daemonSets) -}}
{{- $webhook := $config.webhook.enabled -}}
{{- $calledForPods := and $webhook (or (has $mode (list "affinity" "both")) .Values.webhook.pods) -}}
{{- /* In the mode affinity, templates get their requirement at admission, too, also without the loop. */}}
{{- $calledForDaemonSets := and $webhook (not $observes) (or $daemonSets (and (eq $mode "affinity") $pods (eq $config.pods.daemonSets "patch"))) -}}
{{- $keep := .Values.keep.enabled -}}
{{- if eq (toString $keep) "auto" -}}
{{- $keep = .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" -}}
{{- end -}}
{{- if and $observes $webhook -}}
{{- fail "config.webhook.enabled: got true, expected false, or not set, with config.placement.mode: observe" -}}
{{- end -}}
{{- if and $observes (eq $config.pods.onWrongNode "evict") -}}
{{- fail "config.pods.onWrongNode: got \"evict\", expected warn, or not set, with config.placement.mode: observe" -}}
{{- end -}}
{{- if and $observes (not (or $pods $daemonSets)) -}}
{{- fail "config.loops: expected pods or daemonsets in it with config.placement.mode: observe" -}}
{{- end -}}
{{- if and (has $mode (list "affinity" "both")) (not $webhook) -}}
{{- fail (printf "config.webhook.enabled: got false, expected true, or not set, with config.placement.mode: %s" $mode) -}}
{{- end -}}
{{- if and $config.placement.publish (not $tolerates) -}}
{{- fail (printf "config.placement.publish: got true, expected false with config.placement.mode: %s" $mode) -}}
{{- end -}}
{{- if and $webhook (not (or $calledForPods $calledForDaemonSets)) -}}
{{- fail "config.webhook.enabled: got true, expected false: no request would be sent to the webhook in this mode (see webhook.pods)" -}}
{{- end -}}
{{- if and .Values.webhook.certManager.enabled (not $webhook) -}}
{{- fail "webhook.certManager.enabled: got true, expected false without config.webhook.enabled" -}}
{{- end -}}
{{- if and $webhook (ne $config.webhook.certificates "self") (not .Values.webhook.certManager.enabled) -}}
{{- fail (printf "config.webhook.certificates: got %q, expected self, or webhook.certManager.enabled" $config.webhook.certificates) -}}
{{- end -}}
{{- if and (not $config.leaderElection.enabled) (gt (int .Values.replicas) 1) -}}
{{- fail (printf "replicas: got %d, expected at most 1 with config.leaderElection.enabled: false" (int .Values.replicas)) -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (empty $config.metrics.address) -}}
{{- fail "serviceMonitor.enabled: got true, expected false with config.metrics.address: \"\"" -}}
{{- end -}}
{{- if ne (empty .Values.nodePaths.kubelet.config) (empty .Values.nodePaths.kubelet.binDirectory) -}}
{{- fail "nodePaths.kubelet: expected both config and binDirectory, or neither" -}}
{{- end -}}
{{- if and $config.registries.containerdConfigDirectory $config.registries.containersRegistriesConf -}}
{{- fail "nodePaths.containers: expected no value with nodePaths.containerd: a node has one container runtime" -}}
{{- end -}}
{{- $nodes := and (not $observes) (or (has "nodes" $config.loops) $labels) -}}
{{- /* clean removes what any mode left, so it needs the rights of every loop, until withoutTaints says that nothing is left. */ -}}
{{- $cleans := and .Values.rbac.clean (not $observes) -}}
{{- $undoesAll := and $cleans (not .Values.withoutTaints) -}}
{{- dict
  "given" $given
  "config" $config
  "observes" $observes
  "pods" $pods
  "daemonSets" $daemonSets
  "nodes" $nodes
  "cleans" $cleans
  "cleansBeforeUninstall" (and $cleans .Values.rbac.create .Values.cleanBeforeUninstall.enabled)
  "mayPods" (or $pods $undoesAll)
  "mayDaemonSets" (or $daemonSets $undoesAll)
  "mayNodes" (or $nodes $undoesAll)
  "labels" $labels
  "webhook" $webhook
  "calledForPods" $calledForPods
  "calledForDaemonSets" $calledForDaemonSets
  "ownCertificates" (and $webhook (eq $config.webhook.certificates "self"))
  "keep" (and $keep (not $observes) $daemonSets)
  "keepPods" (and $keep $tolerates $pods)
  "publish" (and $config.placement.publish $tolerates $pods)
  "tolerations" (ternary (list $taint) list (and (or $tolerates $undoes) (or $pods $daemonSets)))
  "taints" (ternary (list $taint) list (and $config.taints.manage (or $tolerates $undoes) (has "nodes" $config.loops)))
  "taintsNodes" (and $tolerates $config.taints.manage (has "nodes" $config.loops))
  "leaseNamespace" ($config.leaderElection.namespace | default .Release.Namespace)
  "metricsPort" (regexFind "[0-9]+$" $config.metrics.address | int)
  "webhookPort" (regexFind "[0-9]+$" $config.webhook.address | int)
| toJson -}}
{{- end }}

{{/* Label rules by domain: the shipped ones, and those of the values. */}}
{{- define "archaware.rules" -}}
{{- $rules := dict -}}
{{- if .Values.nodeLabels.shipped -}}
{{- $files := dict -}}
{{- range $path, $_ := .Files.Glob "files/labels/accelerators/*" -}}{{- $_ := set $files (base $path) ($.Files.Get $path) -}}{{- end -}}
{{- $_ := set $rules "accelerators" $files -}}
{{- end -}}
{{- range $domain, $files := .Values.nodeLabels.rules -}}
{{- $_ := set $rules $domain (mergeOverwrite (get $rules $domain | default dict) $files) -}}
{{- end -}}
{{- toJson $rules -}}
{{- end }}

{{/* Volumes have shorter names than domains. */}}
{{- define "archaware.rulesVolume" -}}
{{- if regexMatch "^[a-z0-9-]{1,50}$" . }}labels-{{ . }}{{ else }}labels-{{ sha256sum . | trunc 16 }}{{ end -}}
{{- end }}
