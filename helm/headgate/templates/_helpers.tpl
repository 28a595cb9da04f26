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

{{- /* What all pods share, of a pod's spec. */ -}}
{{- define "headgate.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
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
image: "{{ $values.image.repository }}:{{ $values.image.tag | default .root.Chart.AppVersion }}"
imagePullPolicy: {{ $values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
envFrom:
  - secretRef: {name: {{ $values.existingSecret }}}
env:
  - name: HEADGATE_ALLOWED_HOSTS
    value: {{ printf "%s,%s-web,127.0.0.1" (join "," $values.hosts) $name | quote }}
  - name: HEADGATE_INTERNAL_URL
    value: http://{{ $name }}-web:8000
  - name: HEADGATE_DEEP_STORAGE
    value: {{ $values.deepStorage | quote }}
  - name: HEADGATE_TASK_DIR
    value: /var/lib/headgate/tasks
  - name: HEADGATE_SPARK_MASTER
    value: {{ $values.spark.master | quote }}
  - name: HEADGATE_SPARK_DEPLOY_MODE
    value: {{ $values.spark.deployMode }}
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
{{- end }}
