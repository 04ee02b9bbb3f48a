package ecs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/bench/autoscale"
	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/internal/cfntest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/health"
)

// object is what a property has.
type object = map[string]any

// resolved returns a resource's properties, or fails the test.
func resolved(t *testing.T, template *cfntest.Template, id string, with cfntest.Values) object {
	t.Helper()
	properties, err := template.Resolved(id, with)
	if err != nil {
		t.Fatal(err)
	}
	return properties
}

// ofType returns the ids of the resources of a type, sorted.
func ofType(template *cfntest.Template, typ string) (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(template.Resources)) {
		if template.Resources[id].Type == typ {
			ids = append(ids, id)
		}
	}
	return ids
}

// container is one container of a task.
type container struct {
	task        string // the id of its task definition
	execution   string // the id of the execution role
	command     []string
	environment map[string]string
	secrets     map[string]string
	has         object
}

// containers returns all containers of services.yaml. With everything, optional secrets are there.
func containers(t *testing.T, template *cfntest.Template, everything bool) (all []container) {
	t.Helper()
	for _, task := range ofType(template, "AWS::ECS::TaskDefinition") {
		properties := resolved(t, template, task, values(everything))
		execution := strings.TrimSuffix(strings.Trim(properties["ExecutionRoleArn"].(string), "<>"), ".Arn")
		for _, has := range properties["ContainerDefinitions"].([]any) {
			c := container{task: task, execution: execution, environment: map[string]string{}, secrets: map[string]string{}, has: has.(object)}
			for _, word := range c.has["Command"].([]any) {
				c.command = append(c.command, word.(string))
			}
			for _, e := range list(c.has["Environment"]) {
				c.environment[e["Name"].(string)] = fmt.Sprint(e["Value"])
			}
			for _, s := range list(c.has["Secrets"]) {
				c.secrets[s["Name"].(string)] = s["ValueFrom"].(string)
			}
			all = append(all, c)
		}
	}
	return all
}

// list returns the objects of a list; nil for none.
func list(v any) (out []object) {
	all, _ := v.([]any)
	for _, o := range all {
		out = append(out, o.(object))
	}
	return out
}

// ours reports whether the container runs holdfast, and its role and stages.
func (c container) ours() (role string, stages []registry.Stage, ok bool) {
	if strings.HasPrefix(c.command[0], "/") {
		return "", nil, false
	}
	for _, stage := range c.command[1:] {
		stages = append(stages, registry.Stage(stage))
	}
	return c.command[0], stages, true
}

func TestEveryStageHasItsService(t *testing.T) {
	template := cfntest.Load(t, "services.yaml")
	runs := map[string]string{} // by task
	for _, c := range containers(t, template, false) {
		runs[c.task] = strings.Join(c.command, " ")
	}
	served := map[string]object{}
	for _, id := range ofType(template, "AWS::ECS::Service") {
		properties := resolved(t, template, id, values(false))
		served[runs[strings.Trim(properties["TaskDefinition"].(string), "<>")]] = properties
	}
	for _, stage := range registry.Stages() {
		service := served["worker "+string(stage)]
		if service == nil || service["ServiceName"] != string(stage) {
			t.Errorf("the service of stage %s is %v", stage, service)
			continue
		}
		if _, ok := service["DesiredCount"]; ok {
			t.Errorf("service %s has a count, to which each update would set back what the scaling chose", stage)
		}
		strategy := list(service["CapacityProviderStrategy"])
		if len(strategy) != 2 || strategy[0]["CapacityProvider"] != "FARGATE" || strategy[0]["Base"] != 1 || strategy[0]["Weight"] != 0 || strategy[1]["CapacityProvider"] != "FARGATE_SPOT" {
			t.Errorf("service %s runs on %v, want one on demand and all others on Spot", stage, strategy)
		}
		id := title(string(stage))
		scaled := resolved(t, template, id+"Scaling", values(false))
		if scaled["ResourceId"] != "service/<Cluster>/<"+id+"Service.Name>" || scaled["MinCapacity"] != 0 || scaled["MaxCapacity"].(int) < 1 {
			t.Errorf("stage %s scales %v", stage, scaled)
		}
	}
	registries := served["registry"]
	if strategy := list(registries["CapacityProviderStrategy"]); len(strategy) != 1 || strategy[0]["CapacityProvider"] != "FARGATE" {
		t.Errorf("the Registry runs on %v", strategy)
	}
}

// TestScaling_Figures: everything that scales a stage, or alarms about it, reads the figures that are
// published, of this stage.
func TestScaling_Figures(t *testing.T) {
	template := cfntest.Load(t, "services.yaml")
	about := func(of object) string {
		dimension := list(of["Dimensions"])[0]
		return fmt.Sprint(of["Namespace"], " ", of["MetricName"], " ", dimension["Name"], "=", dimension["Value"])
	}
	policy := autoscale.Deployed()
	for _, stage := range registry.Stages() {
		id := title(string(stage))
		figure := func(name string) string { return "Holdfast " + name + " Stage=" + string(stage) }
		track := resolved(t, template, id+"Track", values(false))["TargetTrackingScalingPolicyConfiguration"].(object)
		got := []string{about(resolved(t, template, id+"BacklogAlarm", values(false)))}
		for _, query := range list(track["CustomizedMetricSpecification"].(object)["Metrics"])[1:] {
			got = append(got, about(query["MetricStat"].(object)["Metric"].(object)))
		}
		wake := resolved(t, template, id+"WakeAlarm", values(false))
		for _, query := range list(wake["Metrics"])[1:] {
			got = append(got, about(query["MetricStat"].(object)["Metric"].(object)))
			if period := query["MetricStat"].(object)["Period"]; period != int(policy.WakePeriod.Seconds()) {
				t.Errorf("the alarm that wakes %s looks every %v s, want %s", stage, period, policy.WakePeriod)
			}
		}
		if want := []string{
			figure("BacklogSeconds"), figure("BacklogSeconds"), figure("SlotUtilization"), figure("Needed"), figure("LiveWorkers"), figure("Needed"), figure("LiveWorkers"),
		}; !slices.Equal(got, want) {
			t.Errorf("stage %s reads %v, want %v", stage, got, want)
		}
		if actions := wake["AlarmActions"]; fmt.Sprint(actions) != "[<"+id+"Wake>]" {
			t.Errorf("the alarm that wakes %s does %v", stage, actions)
		}
		step := resolved(t, template, id+"Wake", values(false))["StepScalingPolicyConfiguration"].(object)
		scales := []any{track["TargetValue"], track["ScaleOutCooldown"], track["ScaleInCooldown"], step["Cooldown"]}
		for i, chosen := range []time.Duration{policy.Target, policy.OutCooldown, policy.InCooldown, policy.WakeCooldown} {
			if scales[i] != int(chosen.Seconds()) {
				t.Errorf("stage %s has %v, and the model chose %s", stage, scales[i], chosen)
			}
		}
	}
	all, err := template.Allowed("RegistryRole", values(false))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(all, func(s cfntest.Statement) bool {
		return slices.Contains(s.Actions, "cloudwatch:PutMetricData") && fmt.Sprint(s.Condition) == "map[StringEquals:map[cloudwatch:namespace:Holdfast]]"
	}) {
		t.Error("the Registry may not publish its figures, or may publish others")
	}
}

// TestFirstWorkers: the Registry knows the cluster and the bounds of the stages' services, and it alone may
// change their counts: of these services only, without giving them tasks of others or commands inside tasks.
func TestFirstWorkers(t *testing.T) {
	template := cfntest.Load(t, "services.yaml")
	service := func(name string) string { return "arn:aws:ecs:eu-central-1:123456789012:service/<Cluster>/" + name }
	told := map[string]string{}
	for _, c := range containers(t, template, false) {
		if role, _, ours := c.ours(); ours && role == "registry" {
			told = c.environment
		}
	}
	var most config.Workers
	if err := most.Decode(told["HOLDFAST_ECS_MOST"]); err != nil || told["HOLDFAST_ECS_CLUSTER"] != "<Cluster>" {
		t.Errorf("the Registry is told of the cluster %s and the bounds %s: %v", told["HOLDFAST_ECS_CLUSTER"], told["HOLDFAST_ECS_MOST"], err)
	}
	for _, stage := range registry.Stages() {
		if n, ok := most[stage]; !ok || n != resolved(t, template, title(string(stage))+"Scaling", values(false))["MaxCapacity"] {
			t.Errorf("the Registry is told that %s may have %d workers: %t", stage, n, ok)
		}
	}
	for _, id := range ofType(template, "AWS::IAM::Role") {
		all, err := template.Allowed(id, values(false))
		if err != nil {
			t.Fatal(err)
		}
		for _, action := range []string{"ecs:UpdateService", "ecs:DescribeServices"} {
			for _, stage := range registry.Stages() {
				if may, want := cfntest.Allows(all, action, service(string(stage))), id == "RegistryRole"; may != want {
					t.Errorf("%s may %s of %s: %t", id, action, stage, may)
				}
			}
			for _, other := range []string{"registry", "nsqd-1", "expand-2"} {
				if cfntest.Allows(all, action, service(other)) {
					t.Errorf("%s may %s of %s", id, action, other)
				}
			}
		}
		for _, s := range all {
			const within = "map[ArnLikeIfExists:map[ecs:task-definition:arn:aws:ecs:eu-central-1:123456789012:task-definition/stack-*] " +
				"StringEqualsIfExists:map[ecs:enable-execute-command:false]]"
			if slices.Contains(s.Actions, "ecs:UpdateService") && fmt.Sprint(s.Condition) != within {
				t.Errorf("%s may %v if %v", id, s.Actions, s.Condition)
			}
		}
	}
}

// TestContainersHoldTheirSecretsAlone: each container gets the secrets of its role and no others, and
// its execution role may read these and no others.
func TestContainersHoldTheirSecretsAlone(t *testing.T) {
	template := cfntest.Load(t, "services.yaml")
	all := containers(t, template, true)
	held := map[string]map[string]bool{} // ARNs by execution role
	for _, c := range all {
		if held[c.execution] == nil {
			held[c.execution] = map[string]bool{}
		}
		for _, arn := range c.secrets {
			held[c.execution][arn] = true
		}
		role, stages, ok := c.ours()
		if !ok {
			continue
		}
		used := config.Secrets(role, stages...)
		for _, name := range config.AllSecrets() {
			// The addresses of buckets hold no secret here: the task's role opens them.
			if fixed[name] != "" || elsewhere[name] != "" {
				continue
			}
			if _, has := c.secrets[name]; has != slices.Contains(used, name) {
				t.Errorf("%s of %s has %s: %t; its role uses %v", c.has["Name"], c.task, name, has, used)
			}
		}
		for name := range c.environment {
			if slices.Contains(config.AllSecrets(), name) && fixed[name] == "" {
				t.Errorf("%s of %s has %s in plain text", c.has["Name"], c.task, name)
			}
		}
		for _, stage := range stages {
			for name, arn := range c.secrets {
				if strings.Contains(arn, "MAX_ATTEMPTS") && arn != "arn:aws:ssm:eu-central-1:123456789012:parameter<"+title(string(stage))+"Tries>" ||
					name == "HOLDFAST_TOKEN" && arn != "arn:aws:ssm:eu-central-1:123456789012:parameter/holdfast/"+string(stage)+"/TOKEN" {
					t.Errorf("stage %s takes %s from %s, want one of its own", stage, name, arn)
				}
			}
		}
	}
	every := map[string]bool{}
	for _, arns := range held {
		maps.Copy(every, arns)
	}
	for role, arns := range held {
		allowed, err := template.Allowed(role, values(true))
		if err != nil {
			t.Fatal(err)
		}
		for arn := range every {
			action := "ssm:GetParameters"
			if strings.Contains(arn, ":secretsmanager:") {
				action = "secretsmanager:GetSecretValue"
			}
			if cfntest.Allows(allowed, action, arn) != arns[arn] {
				t.Errorf("%s may read %s: %t; its tasks need it: %t", role, arn, !arns[arn], arns[arn])
			}
		}
	}
}

// TestRolesStartWithWhatTheyAreTold: each setting of a role is given or named as given elsewhere, all
// are known and valid, and none is missing.
func TestRolesStartWithWhatTheyAreTold(t *testing.T) {
	valid := map[string]string{
		"HOLDFAST_DATABASE_URL": "postgres://holdfast:p@database:5432/holdfast?sslmode=require", "HOLDFAST_REDIS_URL": "rediss://:p@redis:6379/0",
		"HOLDFAST_TOKEN": "hf_1", "HOLDFAST_MAX_ATTEMPTS": "5", "HOLDFAST_SECRET_KEY": strings.Repeat("k", 44),
		"HOLDFAST_RECEIPT_KEY": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "HOLDFAST_OIDC_CLIENT_SECRET": "s",
		"HOLDFAST_EZID_URL": "https://user:p@ezid.example.org", "HOLDFAST_SMTP_URL": "smtp://user:p@mail.example.org:587", "HOLDFAST_MAIL_FROM": "holdfast@example.org",
	}
	template := cfntest.Load(t, "services.yaml")
	for _, everything := range []bool{false, true} {
		for _, c := range containers(t, template, everything) {
			role, stages, ok := c.ours()
			if !ok {
				continue
			}
			t.Run(fmt.Sprintf("%s of %s, everything=%t", c.has["Name"], c.task, everything), func(t *testing.T) {
				for name, value := range c.environment {
					if everything && valid[name] != "" {
						value = valid[name]
					}
					t.Setenv(name, value)
				}
				for name := range c.secrets {
					t.Setenv(name, valid[name])
				}
				settings, err := config.Load(t.Context(), config.Default())
				if err != nil || len(settings.Unknown) > 0 {
					t.Error(err, settings.Unknown)
				}
				needs := map[string][]string{"registry": config.RegistryNeeds, "worker": config.WorkerNeeds, "migrate": {"DATABASE_URL"}}
				if err := settings.Require(role, needs[role]...); err != nil {
					t.Error(err)
				}
				if storages, err := settings.Storages(); role != "migrate" && (err != nil || len(storages) != map[bool]int{false: 1, true: 2}[everything]) {
					t.Errorf("its storages are %v, %v", storages, err)
				}
				if role != "migrate" && settings.NAAN != "12345" {
					t.Errorf("its NAAN is %s", settings.NAAN)
				}
				for _, s := range config.Declarations() {
					_, plain := c.environment[s.Name]
					_, kept := c.secrets[s.Name]
					if want := s.UsedBy(role, stages...) && elsewhere[s.Name] == "" && (everything || optional[s.Name] == ""); (plain || kept) != want {
						t.Errorf("it has %s: %t, want %t", s.Name, plain || kept, want)
					}
				}
			})
		}
	}
	for name := range elsewhere {
		if !slices.ContainsFunc(config.Declarations(), func(s config.Declaration) bool { return s.Name == name }) {
			t.Errorf("elsewhere has %s, which is no setting", name)
		}
	}
}

func TestRegistryMigratesFirst(t *testing.T) {
	template := cfntest.Load(t, "services.yaml")
	task := list(resolved(t, template, "RegistryTask", values(false))["ContainerDefinitions"])
	if len(task) != 2 || task[0]["Name"] != "migrate" || task[0]["Essential"] != false || task[1]["Essential"] != true ||
		fmt.Sprint(task[1]["DependsOn"]) != "[map[Condition:SUCCESS ContainerName:migrate]]" {
		t.Errorf("the Registry's containers are %v", task)
	}
}

// TestContainersStopInTimeAndAreWatched: a container has time to stop, may do no more than it needs, is
// watched, and logs.
func TestContainersStopInTimeAndAreWatched(t *testing.T) {
	template := cfntest.Load(t, "services.yaml")
	for _, c := range containers(t, template, false) {
		role, _, ours := c.ours()
		name := fmt.Sprint(c.has["Name"])
		stop, _ := c.has["StopTimeout"].(int)
		if stop == 0 || stop > 120 { // the most that Fargate allows, and what Spot gives before it takes the machine
			t.Errorf("%s: StopTimeout=%d, want at most 120", name, stop)
		}
		if text := c.environment["HOLDFAST_GRACE"]; ours && role != "migrate" {
			grace, err := time.ParseDuration(text)
			if err != nil || time.Duration(stop)*time.Second < grace+10*time.Second {
				t.Errorf("%s: killed after %d s, want at least 10 s beyond its grace of %v (%v)", name, stop, grace, err)
			}
		}
		if c.has["ReadonlyRootFilesystem"] != true || c.has["User"] != "65532:65532" || fmt.Sprint(c.has["LinuxParameters"]) != "map[Capabilities:map[Drop:[ALL]]]" {
			t.Errorf("%s may do more than it needs", name)
		}
		if h, _ := c.has["HealthCheck"].(object); role != "migrate" && (h == nil || h["Timeout"].(int) >= h["Interval"].(int) || ours && fmt.Sprint(h["Command"]) != "[CMD /holdfast health]") {
			t.Errorf("%s: health check %v", name, h)
		}
		// The root is read-only, so that scratch files need a volume; the image's /tmp gives it its
		// owner.
		if ours && fmt.Sprint(c.has["MountPoints"]) != "[map[ContainerPath:/tmp ReadOnly:false SourceVolume:tmp]]" {
			t.Errorf("%s has no /tmp to write to", name)
		}
		if log := c.has["LogConfiguration"].(object); log["LogDriver"] != "awslogs" || !strings.HasSuffix(log["Options"].(object)["awslogs-group"].(string), "Log") {
			t.Errorf("%s logs to %v", name, log)
		}
		if want := map[bool]string{true: "holdfast:1", false: template.Parameters["NsqImage"]["Default"].(string)}[ours]; c.has["Image"] != want {
			t.Errorf("%s runs the image %s, want %s", name, c.has["Image"], want)
		}
	}
}

// TestTasksFitFargate: Fargate has the sizes that are chosen at first.
func TestTasksFitFargate(t *testing.T) {
	// CPU units to MiB.
	sizes := map[int][]int{256: {512, 1024, 2048}, 512: {1024, 2048, 3072, 4096}, 1024: {2048, 3072, 4096, 5120, 6144, 7168, 8192}}
	template := cfntest.Load(t, "services.yaml")
	for _, id := range ofType(template, "AWS::ECS::TaskDefinition") {
		task := resolved(t, template, id, values(false))
		if fmt.Sprint(task["RequiresCompatibilities"]) != "[FARGATE]" || task["NetworkMode"] != "awsvpc" || !slices.Contains(sizes[task["Cpu"].(int)], task["Memory"].(int)) {
			t.Errorf("%s: %v with network %s, %v CPU units and %v MiB", id, task["RequiresCompatibilities"], task["NetworkMode"], task["Cpu"], task["Memory"])
		}
	}
}

// TestAddresses: every name in holdfast.internal that a container is told is one that services have,
// and the port after it is one that their containers open.
func TestAddresses(t *testing.T) {
	template := cfntest.Load(t, "services.yaml")
	opens := map[string]string{} // by task
	told := map[string]string{}  // address, by who is told
	address := regexp.MustCompile(`([\w-]+)\.holdfast\.internal(:\d+)?`)
	for _, c := range containers(t, template, false) {
		for _, p := range list(c.has["PortMappings"]) {
			opens[c.task] += fmt.Sprintf(":%v ", p["ContainerPort"])
		}
		for _, text := range slices.Concat(slices.Collect(maps.Values(c.environment)), c.command) {
			for _, found := range address.FindAllString(text, -1) {
				told[found] = c.task
			}
		}
		if listen, ok := c.environment["HOLDFAST_LISTEN"]; ok && !strings.Contains(opens[c.task], listen[strings.LastIndex(listen, ":"):]+" ") {
			t.Errorf("%s listens at %s and opens %s", c.task, listen, opens[c.task])
		}
	}
	named := map[string]string{} // open ports, by name
	for _, id := range ofType(template, "AWS::ECS::Service") {
		properties := resolved(t, template, id, values(false))
		for _, r := range list(properties["ServiceRegistries"]) {
			name := resolved(t, template, strings.TrimSuffix(strings.Trim(r["RegistryArn"].(string), "<>"), ".Arn"), values(false))["Name"].(string)
			named[name] = opens[strings.Trim(properties["TaskDefinition"].(string), "<>")]
		}
	}
	for at, who := range told {
		m := address.FindStringSubmatch(at)
		if ports, ok := named[m[1]]; !ok || m[2] != "" && !strings.Contains(ports, m[2]+" ") {
			t.Errorf("%s is told of %s; names and ports are %v", who, at, named)
		}
	}
	for _, needed := range []string{"registry.holdfast.internal:8080", "nsqlookupd-1.holdfast.internal:4160", "nsqlookupd-2.holdfast.internal:4161", "nsqd-1.holdfast.internal", "nsqd-2.holdfast.internal"} {
		if told[needed] == "" {
			t.Errorf("nobody is told of %s", needed)
		}
	}
	if domain := resolved(t, template, "Names", values(false))["Name"]; domain != "holdfast.internal" {
		t.Errorf("names are in %s", domain)
	}
}

// TestNsqds: each has a disk, a name and a service of its own, and keeps messages for as long as steps
// last.
func TestNsqds(t *testing.T) {
	template := cfntest.Load(t, "services.yaml")
	disks := map[string]bool{}
	for _, n := range []string{"1", "2"} {
		task := resolved(t, template, "Nsqd"+n+"Task", values(false))
		command := fmt.Sprint(list(task["ContainerDefinitions"])[0]["Command"])
		for _, want := range []string{"--max-msg-timeout=12h", "--broadcast-address=nsqd-" + n + ".holdfast.internal", "--data-path=/data"} {
			if !strings.Contains(command, want) {
				t.Errorf("nsqd %s runs %s, want %s", n, command, want)
			}
		}
		efs := list(task["Volumes"])[0]["EFSVolumeConfiguration"].(object)
		disks[fmt.Sprint(efs["AuthorizationConfig"])] = true
		if efs["TransitEncryption"] != "ENABLED" {
			t.Errorf("nsqd %s reaches its disk without TLS", n)
		}
		service := resolved(t, template, "Nsqd"+n+"Service", values(false))
		if d := service["DeploymentConfiguration"].(object); d["MaximumPercent"] != 100 || d["MinimumHealthyPercent"] != 0 || service["DesiredCount"] != 1 {
			t.Errorf("two tasks of nsqd %s would share its disk: %v", n, service)
		}
	}
	if len(disks) != 2 {
		t.Errorf("the nsqds share a disk: %v", disks)
	}
}

// TestLoadBalancer: it asks a path that answers while the database is away, ends TLS, and leaves silent
// requests alone.
func TestLoadBalancer(t *testing.T) {
	template := cfntest.Load(t, "services.yaml")
	targets := resolved(t, template, "RegistryTargets", values(false))
	mux := http.NewServeMux()
	health.Server{}.Routes(mux)
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, targets["HealthCheckPath"].(string), nil))
	if answer.Code != http.StatusOK {
		t.Errorf("%s answers %d", targets["HealthCheckPath"], answer.Code)
	}
	redirect := resolved(t, template, "HTTP", values(false))
	if fmt.Sprint(redirect["DefaultActions"]) != "[map[RedirectConfig:map[Port:443 Protocol:HTTPS StatusCode:HTTP_301] Type:redirect]]" {
		t.Errorf("HTTP does %v", redirect["DefaultActions"])
	}
	if https := resolved(t, template, "HTTPS", values(false)); https["Protocol"] != "HTTPS" || len(list(https["Certificates"])) != 1 {
		t.Errorf("HTTPS is %v", https)
	}
	attributes := map[any]any{}
	for _, a := range list(resolved(t, template, "LoadBalancer", values(false))["LoadBalancerAttributes"]) {
		attributes[a["Key"]] = a["Value"]
	}
	if attributes["idle_timeout.timeout_seconds"] != "3600" {
		t.Errorf("the load balancer's attributes are %v", attributes)
	}
}

// TestRolesAreNarrow: no role may do everything of a service, destroy older versions of files, or use
// resources that are not Holdfast's.
func TestRolesAreNarrow(t *testing.T) {
	template := cfntest.Load(t, "services.yaml")
	anywhere := map[string]bool{"ecr:GetAuthorizationToken": true, "cloudwatch:PutMetricData": true} // these have no resource
	for _, id := range ofType(template, "AWS::IAM::Role") {
		all, err := template.Allowed(id, values(true))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			for _, action := range s.Actions {
				if strings.Contains(action, "*") || strings.HasSuffix(action, "ObjectVersion") {
					t.Errorf("%s may %s", id, action)
				}
				if slices.Contains(s.Resources, "*") && !anywhere[action] {
					t.Errorf("%s may %s on everything", id, action)
				}
			}
		}
		// Only those that write to staging or storage may change something there.
		for _, place := range []string{"staging", "storage"} {
			stage := registry.Stage(strings.ToLower(strings.TrimSuffix(id, "Role")))
			may := cfntest.Allows(all, "s3:DeleteObject", "arn:aws:s3:::"+place+"/"+place+"/items/1/file")
			has := services[stage].policies
			if id == "RegistryRole" {
				has = registryPolicies
			}
			want := slices.Contains(has, "!Ref Write"+title(place)) || slices.Contains(has, "!Ref Empty"+title(place))
			if may != want {
				t.Errorf("%s may delete files of %s: %t, want %t", id, place, may, want)
			}
		}
	}
}

// TestDataLasts: what cannot be made again is kept when its stack is deleted, encrypted, and backed up.
func TestDataLasts(t *testing.T) {
	template := cfntest.Load(t, "data.yaml")
	for id, want := range map[string]string{"Staging": "Retain", "Storage": "Retain", "Database": "Snapshot"} {
		if r := template.Resources[id]; r.DeletionPolicy != want || r.UpdateReplacePolicy != want {
			t.Errorf("%s: %s when it is deleted, %s when it is replaced, want %s", id, r.DeletionPolicy, r.UpdateReplacePolicy, want)
		}
	}
	with := values(false)
	for _, id := range ofType(template, "AWS::S3::Bucket") {
		b := resolved(t, template, id, with)
		if fmt.Sprint(b["VersioningConfiguration"]) != "map[Status:Enabled]" || b["BucketEncryption"] == nil ||
			fmt.Sprint(b["PublicAccessBlockConfiguration"]) != "map[BlockPublicAcls:true BlockPublicPolicy:true IgnorePublicAcls:true RestrictPublicBuckets:true]" {
			t.Errorf("bucket %s is %v", id, b)
		}
		rules := fmt.Sprint(b["LifecycleConfiguration"])
		if !strings.Contains(rules, "AbortIncompleteMultipartUpload:map[DaysAfterInitiation:7]") || !strings.Contains(rules, "NoncurrentVersionExpiration") || strings.Contains(rules, "ExpirationInDays") {
			t.Errorf("bucket %s has the rules %s", id, rules)
		}
		policy := fmt.Sprint(resolved(t, template, id+"Policy", with)["PolicyDocument"])
		if !strings.Contains(policy, "aws:SecureTransport:false") || !strings.Contains(policy, "Effect:Deny") {
			t.Errorf("bucket %s is open without TLS: %s", id, policy)
		}
	}
	database := resolved(t, template, "Database", with)
	if database["StorageEncrypted"] != true || database["DeletionProtection"] != true || database["PubliclyAccessible"] != false || database["MultiAZ"] != "true" || database["BackupRetentionPeriod"].(int) < 7 {
		t.Errorf("the database is %v", database)
	}
	redis := resolved(t, template, "Redis", with)
	if redis["TransitEncryptionEnabled"] != true || redis["AtRestEncryptionEnabled"] != true || redis["AuthToken"] == nil {
		t.Errorf("Redis is %v", redis)
	}
	restored := resolved(t, template, "Database", values(true))
	if restored["DBSnapshotIdentifier"] == nil || restored["DBName"] != nil || restored["MasterUsername"] != nil {
		t.Errorf("a restored database is %v; RDS refuses a name or a user with a snapshot", restored)
	}
}

// TestSecurityGroups: who must connect to a port may, out of its own group and into the other's, and
// nobody else may connect at all.
func TestSecurityGroups(t *testing.T) {
	template := cfntest.Load(t, "data.yaml")
	type way struct {
		from, to string
		port     int
	}
	in, out := map[way]bool{}, map[way]bool{}
	const anybody = "0.0.0.0/0"
	note := func(rule object, group string, inward bool) {
		other := group
		for _, key := range []string{"CidrIp", "SourceSecurityGroupId", "DestinationSecurityGroupId"} {
			if rule[key] != nil {
				other = strings.Trim(fmt.Sprint(rule[key]), "<>")
			}
		}
		if rule["IpProtocol"] == "-1" {
			if other != "127.0.0.1/32" {
				t.Errorf("%s has the rule %v", group, rule)
			}
			return
		}
		for _, port := range []int{80, 443, 2049, 4150, 4151, 4160, 4161, 5432, 6379, 8080} {
			switch {
			case port < rule["FromPort"].(int) || port > rule["ToPort"].(int):
			case inward:
				in[way{other, group, port}] = true
			default:
				out[way{group, other, port}] = true
			}
		}
	}
	for _, id := range ofType(template, "AWS::EC2::SecurityGroup") {
		group := resolved(t, template, id, values(false))
		for _, rule := range list(group["SecurityGroupIngress"]) {
			note(rule, id, true)
		}
		for _, rule := range list(group["SecurityGroupEgress"]) {
			note(rule, id, false)
		}
	}
	for _, typ := range []string{"AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress"} {
		for _, id := range ofType(template, typ) {
			rule := resolved(t, template, id, values(false))
			note(rule, strings.Trim(rule["GroupId"].(string), "<>"), strings.HasSuffix(typ, "Ingress"))
		}
	}
	group := func(name string) string { return name + "SecurityGroup" }
	want := map[way]bool{{anybody, group("LoadBalancer"), 80}: true, {anybody, group("LoadBalancer"), 443}: true}
	for to, from := range map[string][]string{
		"Registry 8080": {"LoadBalancer", "Worker", "Operator"}, "Worker 8080": {"Operator"}, "Queue 4150": {"Registry", "Worker"}, "Queue 4151": {"Registry", "Worker"},
		"Queue 4160": {"Queue"}, "Queue 4161": {"Registry", "Worker"}, "Disk 2049": {"Queue"}, "Database 5432": {"Registry", "Operator"}, "Redis 6379": {"Worker"},
	} {
		var name string
		var port int
		if _, err := fmt.Sscan(to, &name, &port); err != nil {
			t.Fatal(err)
		}
		for _, from := range from {
			w := way{group(from), group(name), port}
			want[w] = true
			// The operators' group limits nothing that goes out.
			if from != "Operator" && !out[w] && !out[way{w.from, anybody, port}] {
				t.Errorf("%s may not connect to port %d of %s", w.from, port, w.to)
			}
		}
	}
	for w := range in {
		if !want[w] {
			t.Errorf("%s lets in %s at port %d", w.to, w.from, w.port)
		}
	}
	for w := range want {
		if !in[w] {
			t.Errorf("%s does not let in %s at port %d", w.to, w.from, w.port)
		}
	}
}

// TestPolicies_Limits: IAM's limits on the size of a managed policy, and on how many a role has.
func TestPolicies_Limits(t *testing.T) {
	template := cfntest.Load(t, "services.yaml")
	for _, id := range ofType(template, "AWS::IAM::ManagedPolicy") {
		text, err := json.Marshal(resolved(t, template, id, values(true))["PolicyDocument"])
		if err != nil || len(text) > 6144-1000 { // names of buckets here are short
			t.Errorf("%s has %d bytes, %v", id, len(text), err)
		}
	}
	for _, id := range ofType(template, "AWS::IAM::Role") {
		if policies, _ := resolved(t, template, id, values(true))["ManagedPolicyArns"].([]any); len(policies) > 10 {
			t.Errorf("%s has %d policies", id, len(policies))
		}
	}
}
