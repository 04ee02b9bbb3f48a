package cfntest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, text string) *Template {
	t.Helper()
	path := filepath.Join(t.TempDir(), "template.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(t, path)
}

const sample = `
Parameters:
  Name: {Type: String}
  Topics: {Type: CommaDelimitedList, Default: 'a,b'}
Conditions:
  Named: !Not [!Equals [!Ref Name, '']]
Resources:
  Topic:
    Type: AWS::SNS::Topic
    Properties:
      TopicName: !If [Named, !Sub ['${Name}-${Own}', {Own: !ImportValue {'Fn::Sub': '${Name}-Other'}}], !Ref 'AWS::NoValue']
      Tags: [{Key: a, Value: !GetAtt Queue.Arn}, !If [Named, {Key: b, Value: !Join ['+', !Ref Topics]}, !Ref 'AWS::NoValue']]
  Queue:
    Type: AWS::SQS::Queue
    Properties: {}
  Policy:
    Type: AWS::IAM::ManagedPolicy
    Properties:
      PolicyDocument: {Statement: [{Effect: Allow, Action: 's3:GetObject', Resource: ['arn:aws:s3:::b/x/*']}]}
  Role:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: {}
      ManagedPolicyArns: [!Ref Policy]
      Policies: [{PolicyName: own, PolicyDocument: {Statement: {Effect: Deny, Action: 's3:*', Resource: 'arn:aws:s3:::b/x/secret'}}}]
`

func TestResolved(t *testing.T) {
	template := write(t, strings.Replace(sample, "Statement: {Effect: Deny, Action: 's3:*', Resource: 'arn:aws:s3:::b/x/secret'}", "Statement: [{Effect: Deny, Action: 's3:*', Resource: 'arn:aws:s3:::b/x/secret'}]", 1))
	for name, want := range map[string]map[string]any{
		"n": {"TopicName": "n-o", "Tags": []any{map[string]any{"Key": "a", "Value": "<Queue.Arn>"}, map[string]any{"Key": "b", "Value": "a+b"}}},
		"":  {"Tags": []any{map[string]any{"Key": "a", "Value": "<Queue.Arn>"}}},
	} {
		got, err := template.Resolved("Topic", Values{Parameters: map[string]any{"Name": name}, Imports: map[string]string{"Other": "o"}})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v, %s", err, diff)
		}
	}
	for what, with := range map[string]Values{
		"a parameter": {Imports: map[string]string{"Other": "o"}}, "an import": {Parameters: map[string]any{"Name": "n"}},
	} {
		if got, err := template.Resolved("Topic", with); err == nil {
			t.Errorf("without %s: %v", what, got)
		}
	}
	all, err := template.Allowed("Role", Values{})
	if err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[string]bool{"x/a/b": true, "x/secret": false, "y": false} {
		if Allows(all, "s3:GetObject", "arn:aws:s3:::b/"+resource) != want {
			t.Errorf("%s is allowed: %t", resource, !want)
		}
	}
	if Allows(all, "s3:PutObject", "arn:aws:s3:::b/x/a") {
		t.Error("another action is allowed")
	}
}

func TestReferences(t *testing.T) {
	used, imports := write(t, sample).References()
	names := map[string]int{}
	for _, r := range used {
		names[r.Name+"."+r.Attribute]++
	}
	want := map[string]int{"Name.": 3, "Named.": 2, "AWS::NoValue.": 2, "Queue.Arn": 1, "Topics.": 1, "Policy.": 1}
	if diff := cmp.Diff(want, names); diff != "" || !cmp.Equal(imports, []string{"${Name}-Other"}) {
		t.Errorf("%v %s", imports, diff)
	}
}

// TestFaults: the schema finds what is wrong.
func TestFaults(t *testing.T) {
	schema := LoadSchema(t)
	for change, want := range map[string]string{
		"":                 "",
		"TopicName:>Name:": "Topic: AWS::SNS::Topic has no property Name",
		"Properties: {}> Properties: {DelaySeconds: long}":         "Queue.DelaySeconds: long is no integer",
		"AWS::SQS::Queue> AWS::SQS::Row":                           "Queue: unknown type AWS::SQS::Row",
		"AssumeRolePolicyDocument: {}> Path: /":                    "Role: AWS::IAM::Role needs the property AssumeRolePolicyDocument",
		"ManagedPolicyArns: [!Ref Policy]> ManagedPolicyArns: one": "Role.ManagedPolicyArns: one is no array",
		"PolicyName: own> Policy: own":                             "Role.Policies.0: Policy has no property Policy\nRole.Policies.0: Policy needs the property PolicyName",
	} {
		old, replacement, _ := strings.Cut(change, ">")
		got := strings.Join(schema.Faults(write(t, strings.Replace(sample, old, strings.TrimPrefix(replacement, " "), 1))), "\n")
		if got != want {
			t.Errorf("%s: %s, want %s", change, got, want)
		}
	}
	if !schema.HasAttribute("AWS::SQS::Queue", "Arn") || schema.HasAttribute("AWS::SQS::Queue", "Name") {
		t.Error("the attributes of a queue")
	}
}
