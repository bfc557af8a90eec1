import { badPayload, invalidArgument, type FieldViolation } from '../wire/google-error.ts'
import { canonicalJson, unknownNames, wrongValue } from '../wire/proto-json.ts'
import { CountTokensRequest, GenerateContentRequest } from '../wire/requests.ts'

/** Parses the body of `generateContent` and `streamGenerateContent`. */
export function readGenerateRequest(body: unknown): GenerateContentRequest {
  refuseUnknownNames(body, GENERATE_FIELDS)
  const canonical = canonicalJson(body)
  const parsed = GenerateContentRequest.safeParse(canonical)
  if (!parsed.success) throw wrongValue(parsed.error, canonical)
  return parsed.data
}

/** Parses the body of `countTokens`; it holds contents, or a whole request. */
export function readCountRequest(body: unknown): GenerateContentRequest {
  refuseUnknownNames(body, COUNT_FIELDS)
  const canonical = canonicalJson(body)
  const parsed = CountTokensRequest.safeParse(canonical)
  if (!parsed.success) throw wrongValue(parsed.error, canonical)
  const { contents, generateContentRequest } = parsed.data
  return generateContentRequest ?? { contents, tools: [] }
}

/** Parses JSON, with Google's sentence where it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'Unexpected token.'
    throw invalidArgument(`Invalid JSON payload received. ${reason}\n${text.slice(0, 60)}\n^`)
  }
}

function refuseUnknownNames(body: unknown, known: ReadonlySet<string>): void {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw invalidArgument('Invalid JSON payload received. Root element must be a message.')
  }
  const violations: FieldViolation[] = [...unknownNames(body, known, '')]
  for (const [index, content] of list(field(body, 'contents')).entries()) {
    const path = `contents[${index}]`
    violations.push(...unknownNames(content, CONTENT_FIELDS, path))
    for (const [at, part] of list(field(content, 'parts')).entries()) {
      violations.push(...unknownNames(part, PART_FIELDS, `${path}.parts[${at}]`))
    }
  }
  if (violations.length > 0) throw badPayload(violations)
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}

function list(value: unknown): readonly unknown[] {
  if (value === undefined) return []
  return Array.isArray(value) ? value : [value]
}

const GENERATE_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'contents',
  'systemInstruction',
  'tools',
  'toolConfig',
  'safetySettings',
  'generationConfig',
  'cachedContent',
  'serviceTier',
  'store',
  'labels',
  'continuationToken',
])

const COUNT_FIELDS: ReadonlySet<string> = new Set(['model', 'contents', 'generateContentRequest'])

const CONTENT_FIELDS: ReadonlySet<string> = new Set(['role', 'parts'])

const PART_FIELDS: ReadonlySet<string> = new Set([
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
  'thought',
  'thoughtSignature',
  'videoMetadata',
  'partMetadata',
  'mediaResolution',
  'mediaProcessing',
  'audioTranscription',
  'speechMetadata',
])
