package ecs_test

// The request of ECS RegisterTaskDefinition, as far as Holdfast uses it, in the API's own names: a
// field that ECS does not know, or that nobody here has thought about, fails the strict decoding.

type taskDefinition struct {
	Family                  string                `json:"family"`
	TaskRoleArn             string                `json:"taskRoleArn"`
	ExecutionRoleArn        string                `json:"executionRoleArn"`
	NetworkMode             string                `json:"networkMode"`
	RequiresCompatibilities []string              `json:"requiresCompatibilities"`
	RuntimePlatform         runtimePlatform       `json:"runtimePlatform"`
	CPU                     string                `json:"cpu"`
	Memory                  string                `json:"memory"`
	ContainerDefinitions    []containerDefinition `json:"containerDefinitions"`
	Volumes                 []volume              `json:"volumes"`
	Tags                    []tag                 `json:"tags"`
}

type runtimePlatform struct {
	CPUArchitecture       string `json:"cpuArchitecture"`
	OperatingSystemFamily string `json:"operatingSystemFamily"`
}

type containerDefinition struct {
	Name                   string           `json:"name"`
	Image                  string           `json:"image"`
	Essential              bool             `json:"essential"`
	Command                []string         `json:"command"`
	User                   string           `json:"user"`
	ReadonlyRootFilesystem bool             `json:"readonlyRootFilesystem"`
	StopTimeout            int              `json:"stopTimeout"` // seconds
	DependsOn              []dependency     `json:"dependsOn"`
	Environment            []variable       `json:"environment"`
	Secrets                []secret         `json:"secrets"`
	PortMappings           []portMapping    `json:"portMappings"`
	MountPoints            []mountPoint     `json:"mountPoints"`
	HealthCheck            *healthCheck     `json:"healthCheck"`
	LogConfiguration       logConfiguration `json:"logConfiguration"`
	LinuxParameters        linuxParameters  `json:"linuxParameters"`
}

type dependency struct {
	ContainerName string `json:"containerName"`
	Condition     string `json:"condition"`
}

type variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type secret struct {
	Name      string `json:"name"`
	ValueFrom string `json:"valueFrom"`
}

type portMapping struct {
	ContainerPort int    `json:"containerPort"`
	Protocol      string `json:"protocol"`
}

type mountPoint struct {
	SourceVolume  string `json:"sourceVolume"`
	ContainerPath string `json:"containerPath"`
	ReadOnly      bool   `json:"readOnly"`
}

type volume struct {
	Name string `json:"name"`
}

type healthCheck struct {
	Command     []string `json:"command"`
	Interval    int      `json:"interval"` // this and the next two in seconds
	Timeout     int      `json:"timeout"`
	StartPeriod int      `json:"startPeriod"`
	Retries     int      `json:"retries"`
}

type logConfiguration struct {
	LogDriver string            `json:"logDriver"`
	Options   map[string]string `json:"options"`
}

type linuxParameters struct {
	InitProcessEnabled bool         `json:"initProcessEnabled"`
	Capabilities       capabilities `json:"capabilities"`
}

type capabilities struct {
	Drop []string `json:"drop"`
}

type tag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}
