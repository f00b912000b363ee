{{/*
In the mode observe: refuses to install or to upgrade where taints or gates of ours are in the cluster, as nothing would remove them.
{root, state}. `helm template` and `--dry-run=client` ask no cluster, and find nothing.
*/}}
{{- define "archaware.observable" -}}
{{- $taints := .state.config.taints -}}
{{- if .state.observes -}}
{{- /* As in the program: a key of Kubernetes or of a provider counts only where our annotation records the taint. */ -}}
{{- $goesByKey := and $taints.manage (not (regexMatch "^([^/]+[.])?(kubernetes|k8s)[.]io/" $taints.key)) -}}
{{- $tainted := list -}}
{{- range $node := (lookup "v1" "Node" "" "").items -}}
{{- $recorded := list -}}
{{- with dig "metadata" "annotations" "archaware.dev/managed" "" $node -}}{{- $recorded = dig "taints" list (fromJson .) -}}{{- end -}}
{{- range dig "spec" "taints" list $node -}}
{{- $value := dig "value" "" . -}}
{{- $ours := and $goesByKey (eq .key $taints.key) (eq .effect $taints.effect) (eq $value (dig "status" "nodeInfo" "architecture" "" $node)) -}}
{{- $kind := printf "^%s=[^:]*:%s$" (regexQuoteMeta .key) .effect -}}
{{- range $recorded -}}{{- if regexMatch $kind (toString .) -}}{{- $ours = true -}}{{- end -}}{{- end -}}
{{- if $ours -}}{{- $tainted = append $tainted $node.metadata.name -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- /* A list of all pods is long. Where this mode runs already, no gate can have been added. */ -}}
{{- $before := dict -}}
{{- with dig "data" "config.yaml" "" (lookup "v1" "ConfigMap" .root.Release.Namespace "archaware-controller") -}}{{- $before = fromYaml . -}}{{- end -}}
{{- $gated := list -}}
{{- if ne (dig "placement" "mode" "" $before) "observe" -}}
{{- range $pod := (lookup "v1" "Pod" "" "").items -}}
{{- range dig "spec" "schedulingGates" list $pod -}}
{{- if eq .name "archaware.dev/architecture" -}}{{- $gated = append $gated (printf "%s/%s" $pod.metadata.namespace $pod.metadata.name) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $left := list -}}
{{- with uniq $tainted -}}{{- $left = append $left (printf "taints of archaware on %d node(s) (%s)" (len .) (first . )) -}}{{- end -}}
{{- with $gated -}}{{- $left = append $left (printf "the scheduling gate of archaware on %d pod(s) (%s)" (len .) (first .)) -}}{{- end -}}
{{- if lookup "admissionregistration.k8s.io/v1" "MutatingWebhookConfiguration" "" "archaware-controller" -}}
{{- $left = append $left "the MutatingWebhookConfiguration archaware-controller" -}}
{{- end -}}
{{- with $left -}}
{{- fail (printf "config.placement.mode: got observe, and the cluster has %s: nothing would remove them. First run archaware clean --stop, then install or upgrade (docs/changing-modes.md)" (join ", " .)) -}}
{{- end -}}
{{- end -}}
{{- end }}
