import type { Content, Part } from '../wire/content.ts'
import { invalidArgument, type GoogleError } from '../wire/google-error.ts'

/** Refuses conversations that the real API refuses, with the real sentences. */
export function checkContents(contents: readonly Content[], message: string): void {
  const fault =
    findMissing(contents, message) ?? findWrongRole(contents) ?? findBrokenPairing(contents)
  if (fault) throw fault
}

/** Refuses a Gemini 3 conversation whose current turn has lost the signature of a function call. */
export function checkSignatures(contents: readonly Content[]): void {
  // Only the turn since the user's last message is checked, and in each step only the first call carries a signature.
  const turnStart = contents.findLastIndex(
    (content) => content.role !== 'model' && !responses(content).length,
  )
  for (const [index, content] of contents.entries()) {
    const first = index > turnStart ? calls(content)[0] : undefined
    if (!first || first.thoughtSignature) continue
    throw invalidArgument(
      `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${first.functionCall?.name}\` , position ${index + 1}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.`,
    )
  }
}

function findMissing(contents: readonly Content[], message: string): GoogleError | undefined {
  if (contents.length === 0) {
    return invalidArgument(`* ${message}.contents: contents is not specified\n`)
  }
  const faults = contents.flatMap((content, index) => {
    const path = `${message}.contents[${index}].parts`
    if (!content.parts?.length) return [`* ${path}: contents.parts must not be empty.\n`]
    return content.parts.flatMap((part, at) => missingInPart(part, `${path}[${at}]`))
  })
  return faults.length > 0 ? invalidArgument(faults.join('')) : undefined
}

function missingInPart(part: Part, path: string): readonly string[] {
  if (!DATA_FIELDS.some((field) => part[field] !== undefined)) {
    return [`* ${path}.data: required oneof field 'data' must have one initialized field\n`]
  }
  if (part.functionCall?.name === '')
    return [`* ${path}.function_call.name: Name cannot be empty.\n`]
  if (part.functionResponse && !part.functionResponse.name) {
    return [`* ${path}.function_response.name: Name cannot be empty.\n`]
  }
  return []
}

function findWrongRole(contents: readonly Content[]): GoogleError | undefined {
  const known = contents.every(({ role }) => role === undefined || ROLES.has(role))
  return known ? undefined : invalidArgument('Please use a valid role: user, model.')
}

function findBrokenPairing(contents: readonly Content[]): GoogleError | undefined {
  for (const [index, content] of contents.entries()) {
    const neighbours = { before: contents.slice(0, index), after: contents[index + 1] }
    const fault = callFault(content, neighbours) ?? responseFault(content, neighbours)
    if (fault) return invalidArgument(fault)
  }
  if (contents.at(-1)?.role === 'model') {
    return invalidArgument(
      'Please ensure that multiturn requests end with a user role or a function response.',
    )
  }
  return undefined
}

interface Neighbours {
  readonly before: readonly Content[]
  readonly after: Content | undefined
}

function callFault(content: Content, { before, after }: Neighbours): string | undefined {
  const called = calls(content).length
  if (called === 0) return undefined
  if (responses(content).length > 0) {
    return 'Please ensure that function call turn contains at least one function_call part which can not be mixed with function_response parts.'
  }
  // Contents of the model in a row are one turn: ADK sends the text before a call as a content of its own.
  if (!before.some(({ role }) => role !== 'model')) {
    return 'Please ensure that function call turn comes immediately after a user turn or after a function response turn.'
  }
  const answered = after ? responses(after).length : 0
  if (answered === 0) {
    return 'Please ensure that function call turn is followed by a function response turn.'
  }
  if (answered !== called) {
    return 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.'
  }
  return undefined
}

function responseFault(content: Content, { before }: Neighbours): string | undefined {
  if (responses(content).length === 0) return undefined
  const previous = before.at(-1)
  if (previous && calls(previous).length > 0) return undefined
  return 'Please ensure that function response turn comes immediately after a function call turn.'
}

function calls(content: Content): readonly Part[] {
  return content.parts?.filter((part) => part.functionCall) ?? []
}

function responses(content: Content): readonly Part[] {
  return content.parts?.filter((part) => part.functionResponse) ?? []
}

const ROLES: ReadonlySet<string> = new Set(['user', 'model', 'function'])

const DATA_FIELDS = [
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
] as const
