import type { FunctionDeclaration } from '../wire/content.ts'
import { invalidArgument } from '../wire/google-error.ts'
import type { GenerateContentRequest } from '../wire/requests.ts'

/** Refuses tools that the real API refuses, with the real sentences. */
export function checkTools(request: GenerateContentRequest): void {
  const faults = request.tools.flatMap((tool, toolIndex) =>
    (tool.functionDeclarations ?? []).flatMap(({ name }, index) =>
      FUNCTION_NAME.test(name)
        ? []
        : [
            `* GenerateContentRequest.tools[${toolIndex}].function_declarations[${index}].name: Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.\n`,
          ],
    ),
  )
  if (faults.length > 0) throw invalidArgument(faults.join(''))

  const names = declaredFunctions(request).map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw invalidArgument(`Duplicate function declaration found: ${twice}`)
  checkCallingConfig(request, new Set(names))
}

export function declaredFunctions(request: GenerateContentRequest): readonly FunctionDeclaration[] {
  return request.tools.flatMap((tool) => tool.functionDeclarations ?? [])
}

function checkCallingConfig(request: GenerateContentRequest, names: ReadonlySet<string>): void {
  const config = request.toolConfig?.functionCallingConfig
  if (!config) return
  if (names.size === 0) {
    throw invalidArgument('Function calling config is set without function_declarations.')
  }
  const allowed = config.allowedFunctionNames ?? []
  if (allowed.length > 0 && config.mode !== 'ANY' && config.mode !== 'VALIDATED') {
    throw invalidArgument(
      '`allowed_function_names` should be set only when function calling mode is ANY.',
    )
  }
  const undeclared = allowed.find((name) => !names.has(name))
  if (undeclared !== undefined) {
    throw invalidArgument(
      `\`allowed_function_names\` should be a subset of the declared functions; ${undeclared} is not declared.`,
    )
  }
}

const FUNCTION_NAME = /^[a-zA-Z_][\w.:-]{0,63}$/
