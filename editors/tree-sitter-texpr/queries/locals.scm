[(function) (combiner) (instruction) (block) (loop) (static_for)] @local.scope

(parameter name: (identifier) @local.definition.parameter)
(constant_parameter name: (identifier) @local.definition.parameter)
(loop index: (identifier) @local.definition.var)
(static_for index: (identifier) @local.definition.var)
(new name: (identifier) @local.definition.var)
(registers name: (identifier) @local.definition.var)
(let name: (identifier) @local.definition.var)
(let name: (names (identifier) @local.definition.var))

(identifier) @local.reference
