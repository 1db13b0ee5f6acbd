# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields that an archive for support may show: of objects of the API by kind, and of records in logs. Data.

Sources: k8s.io/api (core/v1, apps/v1, storage/v1 types.go), the CSI specification (csi.proto), klog, zap and logrus, csi-proxy's API,
wevtutil's XML, reg.exe and sc.exe. What is not listed is replaced by its type and length.
"""

from __future__ import annotations

# Fields of objects, by the field that they are in; a kind's own fields stand under the kind.
OBJECT_FIELDS = {
    field: frozenset(names.split())
    for field, names in {
        "metadata": "name generateName namespace uid resourceVersion generation creationTimestamp deletionTimestamp"
        " deletionGracePeriodSeconds labels annotations ownerReferences finalizers",
        "ownerReferences": "apiVersion kind name uid controller blockOwnerDeletion",
        # Node
        "Node": "apiVersion kind metadata spec status",
        "Node.spec": "podCIDR podCIDRs providerID unschedulable taints",
        "Node.status": "addresses allocatable capacity conditions daemonEndpoints images nodeInfo phase volumesAttached volumesInUse runtimeHandlers features",
        "taints": "key value effect timeAdded",
        "addresses": "type address",
        "daemonEndpoints": "kubeletEndpoint",
        "kubeletEndpoint": "Port",
        "images": "names sizeBytes",
        "nodeInfo": "architecture bootID containerRuntimeVersion kernelVersion kubeProxyVersion kubeletVersion machineID operatingSystem osImage systemUUID",
        "volumesAttached": "name devicePath",
        "conditions": "type status reason message lastHeartbeatTime lastProbeTime lastTransitionTime lastUpdateTime observedGeneration",
        # CSINode, CSIDriver, VolumeAttachment, StorageClass
        "CSINode": "apiVersion kind metadata spec",
        "CSINode.spec": "drivers",
        "drivers": "name nodeID topologyKeys allocatable",
        "CSIDriver": "apiVersion kind metadata spec",
        "CSIDriver.spec": "attachRequired podInfoOnMount fsGroupPolicy volumeLifecycleModes storageCapacity requiresRepublish seLinuxMount tokenRequests",
        "tokenRequests": "audience expirationSeconds",
        "VolumeAttachment": "apiVersion kind metadata spec status",
        "VolumeAttachment.spec": "attacher nodeName source",
        "source": "persistentVolumeName component host",
        "VolumeAttachment.status": "attached attachError detachError attachmentMetadata",
        "attachError": "message time errorCode",
        "detachError": "message time errorCode",
        "StorageClass": "apiVersion kind metadata provisioner reclaimPolicy volumeBindingMode allowVolumeExpansion mountOptions allowedTopologies parameters",
        "allowedTopologies": "matchLabelExpressions",
        "matchLabelExpressions": "key values",
        # PersistentVolume, PersistentVolumeClaim
        "PersistentVolume": "apiVersion kind metadata spec status",
        "PersistentVolume.spec": "accessModes capacity claimRef csi mountOptions nodeAffinity persistentVolumeReclaimPolicy storageClassName volumeMode"
        " awsElasticBlockStore azureDisk azureFile gcePersistentDisk vsphereVolume hostPath local nfs",
        "PersistentVolume.status": "phase reason message lastPhaseTransitionTime",
        "claimRef": "apiVersion kind name namespace uid resourceVersion",
        "csi": "driver volumeHandle fsType readOnly volumeAttributes nodeStageSecretRef nodePublishSecretRef controllerExpandSecretRef"
        " controllerPublishSecretRef nodeExpandSecretRef",
        "PersistentVolumeClaim": "apiVersion kind metadata spec status",
        "PersistentVolumeClaim.spec": "accessModes resources selector storageClassName volumeMode volumeName dataSource dataSourceRef",
        "PersistentVolumeClaim.status": "phase accessModes capacity conditions allocatedResources allocatedResourceStatuses",
        # ConfigMap and others: that they are there.
        "ConfigMap": "apiVersion kind metadata",
        # Pod and DaemonSet
        "Pod": "apiVersion kind metadata spec status",
        "DaemonSet": "apiVersion kind metadata spec status",
        "DaemonSet.spec": "minReadySeconds revisionHistoryLimit selector template updateStrategy",
        "DaemonSet.status": "currentNumberScheduled desiredNumberScheduled numberAvailable numberMisscheduled numberReady numberUnavailable"
        " observedGeneration updatedNumberScheduled conditions collisionCount",
        "updateStrategy": "type rollingUpdate",
        "rollingUpdate": "maxSurge maxUnavailable",
        "selector": "matchLabels matchExpressions",
        "template": "metadata spec",
        "podSpec": "activeDeadlineSeconds affinity automountServiceAccountToken containers dnsPolicy enableServiceLinks ephemeralContainers hostNetwork"
        " hostPID hostProcess imagePullSecrets initContainers nodeName nodeSelector os overhead preemptionPolicy priority priorityClassName"
        " readinessGates restartPolicy runtimeClassName schedulerName securityContext serviceAccount serviceAccountName shareProcessNamespace"
        " terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes",
        "containers": "name image imagePullPolicy command args workingDir env envFrom ports resources volumeMounts volumeDevices livenessProbe"
        " readinessProbe startupProbe lifecycle securityContext restartPolicy terminationMessagePath terminationMessagePolicy",
        "os": "name",
        "env": "name value valueFrom",
        "valueFrom": "fieldRef resourceFieldRef secretKeyRef configMapKeyRef",
        "fieldRef": "apiVersion fieldPath",
        "resourceFieldRef": "containerName divisor resource",
        "reference": "name namespace key optional",
        "envFrom": "prefix secretRef configMapRef",
        "ports": "name containerPort hostPort protocol hostIP",
        "resources": "limits requests claims",
        "volumeMounts": "name mountPath mountPropagation readOnly recursiveReadOnly subPath subPathExpr",
        "volumeDevices": "name devicePath",
        "probe": "exec failureThreshold httpGet tcpSocket grpc initialDelaySeconds periodSeconds successThreshold timeoutSeconds terminationGracePeriodSeconds",
        "exec": "command",
        "httpGet": "path port scheme host",
        "tcpSocket": "port host",
        "grpc": "port service",
        "lifecycle": "preStop postStart",
        "preStop": "exec httpGet sleep",
        "postStart": "exec httpGet sleep",
        "sleep": "seconds",
        "securityContext": "allowPrivilegeEscalation privileged readOnlyRootFilesystem runAsNonRoot runAsUser runAsGroup fsGroup fsGroupChangePolicy"
        " supplementalGroups windowsOptions capabilities seccompProfile seLinuxOptions",
        "windowsOptions": "gmsaCredentialSpecName hostProcess runAsUserName",
        "capabilities": "add drop",
        "seccompProfile": "type localhostProfile",
        "tolerations": "key operator value effect tolerationSeconds",
        "affinity": "nodeAffinity podAffinity podAntiAffinity",
        "affinityTerm": "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution required nodeSelectorTerms"
        " matchExpressions matchFields matchLabels labelSelector topologyKey namespaces namespaceSelector preference podAffinityTerm"
        " weight key operator values",
        "topologySpreadConstraints": "maxSkew topologyKey whenUnsatisfiable labelSelector minDomains nodeAffinityPolicy nodeTaintsPolicy matchLabelKeys",
        "readinessGates": "conditionType",
        "volumes": "name hostPath emptyDir configMap secret projected downwardAPI persistentVolumeClaim csi ephemeral nfs awsElasticBlockStore"
        " azureDisk azureFile gcePersistentDisk vsphereVolume",
        "hostPath": "path type",
        "emptyDir": "medium sizeLimit",
        "configMap": "name defaultMode optional items",
        "secret": "secretName defaultMode optional items",
        "items": "key path mode",
        "projected": "sources defaultMode",
        "sources": "serviceAccountToken configMap secret downwardAPI",
        "serviceAccountToken": "audience expirationSeconds path",
        "downwardAPI": "items defaultMode",
        "persistentVolumeClaim": "claimName readOnly",
        "inTree": "volumeID diskName diskURI pdName volumePath fsType partition readOnly cachingMode kind secretName secretNamespace shareName"
        " storagePolicyName storagePolicyID server path",
        "Pod.status": "phase reason message conditions containerStatuses initContainerStatuses hostIP hostIPs podIP podIPs qosClass startTime"
        " nominatedNodeName observedGeneration resize",
        "containerStatuses": "name image imageID containerID ready started restartCount state lastState allocatedResources resources volumeMounts",
        "state": "running waiting terminated",
        "running": "startedAt",
        "waiting": "reason message",
        "terminated": "exitCode reason message signal startedAt finishedAt containerID",
        "podIPs": "ip",
        # Event
        "Event": "apiVersion kind metadata involvedObject regarding related reason message note type count firstTimestamp lastTimestamp eventTime"
        " deprecatedCount deprecatedFirstTimestamp deprecatedLastTimestamp deprecatedSource source reportingComponent reportingController"
        " reportingInstance action series",
        "involvedObject": "apiVersion kind name namespace uid resourceVersion fieldPath",
        "series": "count lastObservedTime",
    }.items()
}  # fmt: skip
# Fields with the fields of another one.
SAME_FIELDS = {
    **dict.fromkeys(("Pod.spec", "template.spec"), "podSpec"),
    **dict.fromkeys(("initContainers", "ephemeralContainers"), "containers"),
    **dict.fromkeys(("livenessProbe", "readinessProbe", "startupProbe"), "probe"),
    **dict.fromkeys(
        (
            "secretKeyRef",
            "configMapKeyRef",
            "secretRef",
            "configMapRef",
            "imagePullSecrets",
            "nodeStageSecretRef",
            "nodePublishSecretRef",
            "controllerExpandSecretRef",
            "controllerPublishSecretRef",
            "nodeExpandSecretRef",
        ),
        "reference",
    ),
    **dict.fromkeys(
        (
            "nodeAffinity",
            "podAffinity",
            "podAntiAffinity",
            "requiredDuringSchedulingIgnoredDuringExecution",
            "preferredDuringSchedulingIgnoredDuringExecution",
            "required",
            "nodeSelectorTerms",
            "matchExpressions",
            "matchFields",
            "labelSelector",
            "namespaceSelector",
            "preference",
            "podAffinityTerm",
        ),
        "affinityTerm",
    ),
    **dict.fromkeys(
        ("awsElasticBlockStore", "azureDisk", "azureFile", "gcePersistentDisk", "vsphereVolume", "nfs", "local"),
        "inTree",
    ),
    **dict.fromkeys(("regarding", "related", "dataSource", "dataSourceRef"), "involvedObject"),
    **dict.fromkeys(("initContainerStatuses",), "containerStatuses"),
    **dict.fromkeys(("lastState",), "state"),
    **dict.fromkeys(("hostIPs",), "podIPs"),
    **dict.fromkeys(("deprecatedSource",), "source"),
}
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
    "kubernetes.io",
    "k8s.io",
    "openshift.io",
    "kubewin.io",
    "x-k8s.io",
    "azure.com",
    "amazonaws.com",
    "gke.io",
    "vmware.com",
    "cattle.io",
    "helm.sh",
    "projectcalico.org",
    "windowsmachineconfig.openshift.io",
)
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
