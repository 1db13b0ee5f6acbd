# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields that an archive for support may show: of objects of the API, and of records in logs. Data.

Sources: k8s.io/api (core/v1, apps/v1, storage/v1 types.go), the CSI specification (csi.proto), klog, zap and logrus, csi-proxy's API,
wevtutil's XML, reg.exe and sc.exe. What is not listed is replaced by its type and length.
"""

from __future__ import annotations

# Kinds of which more than the name is shown.
_KINDS_TEXT = """
Node CSINode CSIDriver VolumeAttachment StorageClass PersistentVolume PersistentVolumeClaim ConfigMap Pod DaemonSet Event
"""
KINDS = frozenset(_KINDS_TEXT.split())
# Fields of these objects. Texts in them are redacted all the same.
_FIELDS_TEXT = """
accessModes action activeDeadlineSeconds add address addresses affinity allocatable allocatedResources allocatedResourceStatuses
allowedTopologies allowPrivilegeEscalation allowVolumeExpansion annotations apiVersion architecture args attached attacher attachError
attachmentMetadata attachRequired audience automountServiceAccountToken awsElasticBlockStore azureDisk azureFile blockOwnerDeletion bootID
cachingMode capabilities capacity claimName claimRef claims collisionCount command component conditions conditionType configMap
configMapKeyRef configMapRef containerID containerName containerPort containerRuntimeVersion containers containerStatuses controller
controllerExpandSecretRef controllerPublishSecretRef count creationTimestamp csi currentNumberScheduled daemonEndpoints dataSource
dataSourceRef defaultMode deletionGracePeriodSeconds deletionTimestamp deprecatedCount deprecatedFirstTimestamp deprecatedLastTimestamp
deprecatedSource desiredNumberScheduled detachError devicePath diskName diskURI divisor dnsPolicy downwardAPI driver drivers drop effect
emptyDir enableServiceLinks env envFrom ephemeral ephemeralContainers errorCode eventTime exec exitCode expirationSeconds failureThreshold
features fieldPath fieldRef finalizers finishedAt firstTimestamp fsGroup fsGroupChangePolicy fsGroupPolicy fsType gcePersistentDisk
generateName generation gmsaCredentialSpecName grpc host hostIP hostIPs hostNetwork hostPath hostPID hostPort hostProcess httpGet image
imageID imagePullPolicy imagePullSecrets images initContainers initContainerStatuses initialDelaySeconds involvedObject ip items
kernelVersion key kind kubeletEndpoint kubeletVersion kubeProxyVersion labels labelSelector lastHeartbeatTime lastObservedTime
lastPhaseTransitionTime lastProbeTime lastState lastTimestamp lastTransitionTime lastUpdateTime lifecycle limits livenessProbe local
localhostProfile machineID matchExpressions matchFields matchLabelExpressions matchLabelKeys matchLabels maxSkew maxSurge maxUnavailable
medium message metadata minDomains minReadySeconds mode mountOptions mountPath mountPropagation name names namespace namespaces
namespaceSelector nfs nodeAffinity nodeAffinityPolicy nodeExpandSecretRef nodeID nodeInfo nodeName nodePublishSecretRef nodeSelector
nodeSelectorTerms nodeStageSecretRef nodeTaintsPolicy nominatedNodeName note numberAvailable numberMisscheduled numberReady
numberUnavailable observedGeneration operatingSystem operator optional os osImage overhead ownerReferences parameters partition path
pdName periodSeconds persistentVolumeClaim persistentVolumeName persistentVolumeReclaimPolicy phase podAffinity podAffinityTerm
podAntiAffinity podCIDR podCIDRs podInfoOnMount podIP podIPs Port port ports postStart preemptionPolicy preference
preferredDuringSchedulingIgnoredDuringExecution prefix preStop priority priorityClassName privileged projected protocol providerID
provisioner qosClass readinessGates readinessProbe readOnly readOnlyRootFilesystem ready reason reclaimPolicy recursiveReadOnly regarding
related reportingComponent reportingController reportingInstance requests required requiredDuringSchedulingIgnoredDuringExecution
requiresRepublish resize resource resourceFieldRef resources resourceVersion restartCount restartPolicy revisionHistoryLimit rollingUpdate
runAsGroup runAsNonRoot runAsUser runAsUserName running runtimeClassName runtimeHandlers schedulerName scheme seccompProfile seconds
secret secretKeyRef secretName secretNamespace secretRef securityContext selector seLinuxMount seLinuxOptions series server service
serviceAccount serviceAccountName serviceAccountToken shareName shareProcessNamespace signal sizeBytes sizeLimit sleep source sources spec
started startedAt startTime startupProbe state status storageCapacity storageClassName storagePolicyID storagePolicyName subPath
subPathExpr successThreshold supplementalGroups systemUUID taints tcpSocket template terminated terminationGracePeriodSeconds
terminationMessagePath terminationMessagePolicy time timeAdded timeoutSeconds tokenRequests tolerations tolerationSeconds topologyKey
topologyKeys topologySpreadConstraints type uid unschedulable updatedNumberScheduled updateStrategy value valueFrom values
volumeAttributes volumeBindingMode volumeDevices volumeHandle volumeID volumeLifecycleModes volumeMode volumeMounts volumeName volumePath
volumes volumesAttached volumesInUse vsphereVolume waiting weight whenUnsatisfiable windowsOptions workingDir
"""
FIELDS = frozenset(_FIELDS_TEXT.split())
# Maps with keys of the user's: each value is judged by its key and by its words.
_OPEN_MAPS_TEXT = """
labels annotations matchLabels nodeSelector allocatable capacity limits requests overhead allocatedResources allocatedResourceStatuses
parameters volumeAttributes attachmentMetadata features
"""
OPEN_MAPS = frozenset(_OPEN_MAPS_TEXT.split())
# Fields that name something: kept as they are, and harmless in logs too.
_NAMING_TEXT = """
name namespace uid nodeName host hostname nodeID driver volumeHandle persistentVolumeName claimName storageClassName serviceAccountName
attacher provisioner image names address ip podIP hostIP podCIDR providerID containerID imageID secretName volumeName devicePath bootID
machineID systemUUID generateName volumesInUse reportingInstance priorityClassName schedulerName runtimeClassName volumeID diskName diskURI
volumePath shareName resourceVersion creationTimestamp topologyKeys finalizers secretNamespace
"""
NAMING = frozenset(_NAMING_TEXT.split())
# Domains of annotations of Kubernetes, the platforms and this collection.
PUBLIC_DOMAINS = (
    "kubernetes.io", "k8s.io", "openshift.io", "kubewin.io", "x-k8s.io", "azure.com", "amazonaws.com", "gke.io", "vmware.com",
    "cattle.io", "helm.sh", "projectcalico.org",
)  # fmt: skip
# Variables of a node plugin's container whose values explain: places, names and switches.
HARMLESS_VARIABLE = (
    r"(?i).*_(?:path|endpoint|sock|socket|names?|mode|level|dir|type|id|addr|address|region|namespace|enabled?|timeout|port|interval)"
    r"|address|(?:x_)?csi_\w+"
)

# Fields of records in logs and of texts on Windows, in lower case without signs.
_HARMLESS_TEXT = """
level ts t lvl caller logger msg message err error errors errmsg reason code desc description details stacktrace stack source sourcefile
traceid spanid requestid reqid component controller controllergroup controllerkind operation op action verb method grpccode grpcmethod
grpcservice grpcrequest grpccall grpcresponse grpcerror request req response resp statuscode state result output stdout stderr warning info
debug fatal panic version revision runtime kind apiversion severity event eventid type status phase note cause hint pod pods podname
podnamespace poduid uid containername containerid containers sandboxid podsandboxid node nodename nodes namespace name objectname object ref
namespacename secretname secretnamespace secretref nodestagesecretref nodepublishsecretref serviceaccount serviceaccountname storageclass
storageclassname pvcname pvname claim claimname volume volumes volumename volumeid volumehandle volumepath volumehandles uniquename
volumeuniquename volumespecname innervolumespecname outervolumespecname plugin pluginname pluginpath driver drivername image imageref images
imageid user group groups resource resourceversion verb apigroup groupname labels replicas key operator effect taints finalizers
ownerreferences involvedobject stagingtargetpath stagingpath targetpath target globalpath devicepath path volumecapability
volumecapabilities accesstype accessmode mount block mountflags mountflag mountoptions fstype mode volumecontext volumeattributes
publishcontext context readonly nodeid maxvolumespernode accessibletopology segments topologykeys capacitybytes usage total used available
unit requiredbytes limitbytes capacityrange capabilities capability rpc ready server share subdir lun diskuuid disknumber disk disks diskid
diskname diskuri partition partitionnumber serialnumber host hostname address csistoragek8siopvname csistoragek8siopvcname
csistoragek8siopvcnamespace csistoragek8siopodname csistoragek8siopodnamespace csistoragek8siopoduid csistoragek8sioserviceaccountname
csistoragek8sioephemeral csistoragek8siofstype storagekubernetesiocsiprovisioneridentity skuname protocol cachingmode requestedsizegib
storageaccount networkaccesspolicy localpath remotepath sourcepath linkpath attempt attempts retries durationbeforeretry duration elapsed
timeout latency filemode dirmode vers uid gid actimeo endpoint csiaddress kubeletregistrationpath socket url uri logfile logdir logtostderr
v config kubeconfig servicename displayname starttype errorcontrol binarypathname imagepath loadordergroup tag dependencies dependonservice
servicestartname win32exitcode serviceexitcode checkpoint waithint pid flags resetperiod resetperiodinseconds rebootmessage commandline
failureactions start objectname requiredprivileges servicesidtype delayedautostart failureactionsonnoncrashfailures application appdirectory
appparameters appstdout appstderr appexit apprestartdelay approtatefiles approtatebytes apprestartbytes appthrottle appstopmethodskip
installdir provider guid eventsourcename opcode task keywords timecreated systemtime eventrecordid correlation execution processid threadid
channel computer security userid xmlns qualifiers activityid relatedactivityid categoryinfo fullyqualifiederrorid parametername errorcode
win32error hresult reachable local remote line char at exitcode exitstatus imagename sessionname csdversion servername sharename shortname
persistent privacy useraction contentdisposition contenttype contentlength backoff goversion os arch platform build commit gitversion
gitcommit builddate compiler
"""
HARMLESS = frozenset(_HARMLESS_TEXT.split())
