{{/*
The configuration as the program reads it: the values, and the paths of what the chart mounts. A path that the values contain, too,
is refused, because only one of the two can apply.
*/}}
{{- define "archaware.given" -}}
{{- $given := deepCopy (.Values.config | default dict) -}}
{{- $mounted := list
  (list "webhook" "certificates" "webhook.certManager.enabled" (ternary "/etc/archaware-certificates" "" .Values.webhook.certManager.enabled))
  (list "nodeLabels" "directory" "nodeLabels" (ternary "/etc/archaware-labels" "" (or .Values.nodeLabels.shipped (not (empty .Values.nodeLabels.rules)))))
  (list "credentials" "directory" "credentials.directorySecret" (ternary "" "/etc/archaware-credentials/registries" (empty .Values.credentials.directorySecret)))
  (list "registries" "caFile" "caConfigMap" (ternary "" "/etc/archaware-ca/ca.crt" (empty .Values.caConfigMap)))
  (list "registries" "containerdConfigDirectory" "nodePaths.containerd" (ternary "" "/etc/archaware-node/containerd" (empty .Values.nodePaths.containerd)))
  (list "registries" "containersRegistriesConf" "nodePaths.containers" (ternary "" "/etc/archaware-node/containers" (empty .Values.nodePaths.containers)))
-}}
{{- range $mounted -}}
{{- $group := index . 0 -}}{{- $key := index . 1 -}}{{- $path := index . 3 -}}
{{- if $path -}}
{{- $old := dig $group $key "" $given -}}
{{- if and $old (ne $old $path) -}}
{{- fail (printf "config.%s.%s: got %q, expected no value, because %s sets it" $group $key $old (index . 2)) -}}
{{- end -}}
{{- $_ := set $given $group (mergeOverwrite (get $given $group | default dict) (dict $key $path)) -}}
{{- end -}}
{{- end -}}
{{- with .Values.nodePaths.kubelet -}}
{{- if .config -}}
{{- if dig "credentials" "kubelet" "config" "" $given -}}
{{- fail "config.credentials.kubelet: expected no value, because nodePaths.kubelet sets it" -}}
{{- end -}}
{{- $paths := dict "config" "/etc/archaware-node/kubelet/config.yaml" "binDirectory" "/etc/archaware-node/kubelet/bin" -}}
{{- $_ := set $given "credentials" (mergeOverwrite (get $given "credentials" | default dict) (dict "kubelet" $paths)) -}}
{{- end -}}
{{- end -}}
{{- with .Values.credentials.dockerConfigSecrets -}}
{{- $files := dig "credentials" "dockerConfigFiles" list $given -}}
{{- range . -}}{{- $files = append $files (printf "/etc/archaware-credentials/docker/%s/.dockerconfigjson" .) -}}{{- end -}}
{{- $_ := set $given "credentials" (mergeOverwrite (get $given "credentials" | default dict) (dict "dockerConfigFiles" $files)) -}}
{{- end -}}
{{- if hasKey $given "loops" -}}
{{- if .Values.withoutTaints -}}
{{- fail "withoutTaints: got true, expected false with config.loops, because both say which loops run" -}}
{{- end -}}
{{- else -}}
{{- $whole := include "archaware.effective" (dict "root" . "given" $given) | fromJson -}}
{{- with include "archaware.loops" (dict "config" $whole "withoutTaints" .Values.withoutTaints) | fromJsonArray -}}
{{- $_ := set $given "loops" . -}}
{{- end -}}
{{- end -}}
{{- toJson $given -}}
{{- end }}

{{/*
The loops, if the values do not set them: {config, withoutTaints}, config with every default; [] is all of them. Those for nodes and
DaemonSets run in every mode, because they remove what another mode left, until withoutTaints says that nothing is left.
*/}}
{{- define "archaware.loops" -}}
{{- $config := .config -}}
{{- $tolerates := has $config.placement.mode (list "taints" "both") -}}
{{- if and .withoutTaints (eq $config.placement.mode "observe") -}}
{{- fail "withoutTaints: got true, expected false with config.placement.mode: observe, which has no right to write" -}}
{{- end -}}
{{- if and .withoutTaints $tolerates $config.taints.manage -}}
{{- fail (printf "withoutTaints: got true, expected false with config.placement.mode: %s and config.taints.manage: true" $config.placement.mode) -}}
{{- end -}}
{{- $nodes := not .withoutTaints -}}
{{- $daemonSets := and (eq $config.pods.daemonSets "patch") (or $tolerates (not .withoutTaints)) -}}
{{- if and $nodes $daemonSets -}}
[]
{{- else -}}
{{- $loops := list "pods" -}}
{{- if $nodes -}}{{- $loops = append $loops "nodes" -}}{{- end -}}
{{- if $daemonSets -}}{{- $loops = append $loops "daemonsets" -}}{{- end -}}
{{- if $config.nodeLabels.directory -}}{{- $loops = append $loops "labels" -}}{{- end -}}
{{- toJson $loops -}}
{{- end -}}
{{- end }}

{{/* A configuration with every default: {root, given}. Lists and maps of a key replace its default, as in the program. */}}
{{- define "archaware.effective" -}}
{{- $config := dict -}}
{{- $given := .given -}}
{{- range $key := (.root.Files.Get "files/config.json" | fromJson).keys -}}
{{- $value := $given -}}
{{- range $part := $key.path -}}
{{- $value = ternary (get (ternary $value dict (kindIs "map" $value)) $part) nil (and (kindIs "map" $value) (hasKey $value $part)) -}}
{{- end -}}
{{- $group := $config -}}
{{- range initial $key.path -}}
{{- if not (hasKey $group .) -}}{{- $_ := set $group . dict -}}{{- end -}}
{{- $group = get $group . -}}
{{- end -}}
{{- $_ := set $group (last $key.path) (ternary $key.default $value (kindIs "invalid" $value)) -}}
{{- end -}}
{{- /* As in the program: the mode decides on the webhook if the values do not. */ -}}
{{- if and (has $config.placement.mode (list "affinity" "both")) (not (hasKey (get $given "webhook" | default dict) "enabled")) -}}
{{- $_ := set $config.webhook "enabled" true -}}
{{- end -}}
{{- toJson $config -}}
{{- end }}

{{/* The part of a configuration (with every default) that needs a restart, as one text. */}}
{{- define "archaware.restart" -}}
{{- $config := .config -}}
{{- range $key := (.root.Files.Get "files/config.json" | fromJson).keys -}}
{{- if $key.restart -}}
{{- $value := $config -}}
{{- range $key.path -}}{{- $value = get $value . -}}{{- end -}}
{{ join "." $key.path }}={{ toJson $value }};
{{- end -}}
{{- end -}}
{{- end }}
