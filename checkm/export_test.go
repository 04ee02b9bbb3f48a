package checkm

// NameProblem is nameProblem.
var NameProblem = nameProblem
