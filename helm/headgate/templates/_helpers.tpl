{{- define "headgate.name" -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) -}}
{{- $name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- /* of one part: dict "root" $ "part" "web" */ -}}
{{- define "headgate.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "headgate.labels" -}}
{{ include "headgate.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- /* Whether drivers and executors are pods: empty if not. */ -}}
{{- define "headgate.onKubernetes" -}}
{{- if hasPrefix "k8s://" .Values.spark.master }}yes{{ end -}}
{{- end }}

{{- /* Whether a part asks Kubernetes' API server for them. */ -}}
{{- define "headgate.asksKubernetes" -}}
{{- if has .part (list "web" "worker") }}{{ include "headgate.onKubernetes" .root }}{{ end -}}
{{- end }}

{{- define "headgate.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* Who runs in a pod, and may do no more. */ -}}
{{- define "headgate.user" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "headgate.containerUser" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- /* What all pods share, of a pod's spec. */ -}}
{{- define "headgate.pod" -}}
automountServiceAccountToken: {{ not (empty (include "headgate.asksKubernetes" .)) }}
{{- if include "headgate.asksKubernetes" . }}
serviceAccountName: {{ include "headgate.name" .root }}-{{ .part }}
{{- end }}
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{ include "headgate.user" . }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "headgate.selector" . | nindent 8 }}
{{- end }}

{{- /* What all containers share. */ -}}
{{- define "headgate.container" -}}
{{- $values := .root.Values -}}
{{- $name := include "headgate.name" .root -}}
image: {{ include "headgate.image" .root | quote }}
imagePullPolicy: {{ $values.image.pullPolicy }}
{{ include "headgate.containerUser" . }}
envFrom:
  - secretRef: {name: {{ $values.existingSecret }}}
env:
  - name: HEADGATE_ALLOWED_HOSTS
    value: {{ printf "%s,%s-web,%s-web.%s.svc,127.0.0.1" (join "," $values.hosts) $name $name .root.Release.Namespace | quote }}
  - name: HEADGATE_INTERNAL_URL
    # Not the short name: Spark's pods may be in another namespace.
    value: http://{{ $name }}-web.{{ .root.Release.Namespace }}.svc:8000
  - name: HEADGATE_DEEP_STORAGE
    value: {{ $values.deepStorage | quote }}
  - name: HEADGATE_TASK_DIR
    value: /var/lib/headgate/tasks
  - name: HEADGATE_SPARK_MASTER
    value: {{ $values.spark.master | quote }}
  - name: HEADGATE_SPARK_DEPLOY_MODE
    value: {{ ternary "cluster" $values.spark.deployMode (not (empty (include "headgate.onKubernetes" .root))) }}
  {{- if eq .part "worker" }}
  - name: HEADGATE_WORKER_STOPS_TASKS
    value: "1"
  {{- end }}
  {{- range $key, $value := $values.settings }}
  - name: {{ $key }}
    value: {{ $value | quote }}
  {{- end }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: own, mountPath: /var/lib/headgate/{{ if eq .part "beat" }}beat{{ else }}tasks{{ end }}}
  {{- if $values.deepStorageClaim }}
  - {name: segments, mountPath: {{ $values.deepStorage | quote }}, readOnly: {{ ne .part "worker" }}}
  {{- end }}
  {{- if include "headgate.asksKubernetes" . }}
  - {name: spark, mountPath: /etc/headgate/spark, readOnly: true}
  {{- end }}
{{- end }}

{{- define "headgate.volumes" -}}
- name: tmp
  emptyDir: {sizeLimit: 2Gi}
- name: own
  emptyDir: {{ if eq .part "worker" }}{sizeLimit: {{ .root.Values.worker.scratch }}}{{ else }}{sizeLimit: 1Gi}{{ end }}
{{- with .root.Values.deepStorageClaim }}
- name: segments
  persistentVolumeClaim: {claimName: {{ . }}}
{{- end }}
{{- if include "headgate.asksKubernetes" . }}
- name: spark
  configMap: {name: {{ include "headgate.name" .root }}-spark}
{{- end }}
{{- end }}

{{- /* A pod that Spark completes: dict "root" $ "role" "driver" "more" of its spec. */ -}}
{{- define "headgate.sparkPod" -}}
apiVersion: v1
kind: Pod
spec:
  {{- $spec := include "headgate.sparkPodSpec" . | fromYaml }}
  {{- $volumes := concat $spec.volumes (default list .more.volumes) }}
  {{- mergeOverwrite $spec .more (dict "volumes" $volumes) | toYaml | nindent 2 }}
{{- end }}

{{- define "headgate.sparkPodSpec" -}}
{{- $values := .root.Values -}}
automountServiceAccountToken: {{ eq .role "driver" }}
enableServiceLinks: false
terminationGracePeriodSeconds: 60
{{ include "headgate.user" . }}
containers:
  - name: spark
    {{- include "headgate.containerUser" . | nindent 4 }}
    {{- with $values.spark.credentialsSecret }}
    envFrom:
      - secretRef: {name: {{ . }}}
    {{- end }}
    volumeMounts:
      - {name: tmp, mountPath: /tmp}
      {{- if $values.deepStorageClaim }}
      - {name: segments, mountPath: {{ $values.deepStorage | quote }}}
      {{- end }}
volumes:
  - {name: tmp, emptyDir: {}}
  {{- with $values.deepStorageClaim }}
  - {name: segments, persistentVolumeClaim: {claimName: {{ . }}}}
  {{- end }}
{{- end }}
