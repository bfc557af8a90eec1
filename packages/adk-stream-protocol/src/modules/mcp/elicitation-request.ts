import type { ElicitRequest } from '@modelcontextprotocol/sdk/types.js'

import type { AnswerSchema } from '../../approvals/answer-schema.ts'
import { readAnswerSchema } from '../../approvals/answer-schema.ts'
import { isRecord } from '../../protocol/guards.ts'
import { asksForSecret, isSecretField } from '../../calls/secret-fields.ts'

/** The name of the tool part that shows a question of an MCP server. */
export const ELICITATION_CALL = 'mcp_elicitation'

/** What an MCP server asks a person: for values, or to open a URL. */
export type ElicitationRequest =
  | { readonly mode: 'form'; readonly message: string; readonly schema: AnswerSchema }
  | { readonly mode: 'url'; readonly message: string; readonly url: string; readonly host: string }

/** Why a person cannot be asked. */
interface Fault {
  readonly fault: string
}

const MAX_MESSAGE = 4_000
const MAX_URL = 2_000
const MAX_FIELDS = 50

/** Reads a request of an MCP server. Returns the fault of a request that no person is asked. */
export function readElicitation(params: ElicitRequest['params']): ElicitationRequest | Fault {
  const { message } = params
  if (params.task) return { fault: 'Elicitation as a task is not supported.' }
  if (message.trim() === '') return { fault: '`message` is empty.' }
  if (message.length > MAX_MESSAGE)
    return { fault: `\`message\` is longer than ${MAX_MESSAGE} characters.` }
  return params.mode === 'url'
    ? readUrl(message, params.url)
    : readForm(message, params.requestedSchema)
}

function readForm(
  message: string,
  requested: { readonly properties: Readonly<Record<string, unknown>> },
): ElicitationRequest | Fault {
  const fields = Object.entries(requested.properties)
  if (fields.length > MAX_FIELDS)
    return { fault: `\`requestedSchema\` has more than ${MAX_FIELDS} fields.` }
  for (const [name, field] of fields) {
    const fault = findFieldFault(name, field)
    if (fault !== undefined) return { fault }
  }
  if (asksForSecret(message, Object.values(requested.properties)))
    return { fault: '`message` asks for a secret. MCP forbids this in a form. Use URL mode.' }
  // The answer has no other fields than those that the person saw.
  const read = readAnswerSchema({ ...requested, type: 'object', additionalProperties: false })
  return 'fault' in read
    ? { fault: `\`requestedSchema\`: ${read.fault}` }
    : { mode: 'form', message, schema: read.schema }
}

const PRIMITIVES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean'])

/** MCP allows texts, numbers, yes or no, and choices. It forbids to ask for secrets in a form. */
function findFieldFault(name: string, field: unknown): string | undefined {
  if (!isRecord(field)) return `The field \`${name}\` has no schema.`
  const { type, items } = field
  const isChoice = type === 'array' && isRecord(items) && !('properties' in items)
  if (!PRIMITIVES.has(type) && !isChoice)
    return `The field \`${name}\` is not a string, a number, a boolean or a choice.`
  return isSecretField(name, field)
    ? `The field \`${name}\` asks for a secret. MCP forbids this in a form. Use URL mode.`
    : undefined
}

const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

function readUrl(message: string, given: string): ElicitationRequest | Fault {
  if (given.length > MAX_URL) return { fault: `\`url\` is longer than ${MAX_URL} characters.` }
  if (!URL.canParse(given)) return { fault: '`url` is not valid.' }
  const url = new URL(given)
  const isLocal = url.protocol === 'http:' && LOOPBACK.test(url.hostname)
  if (url.protocol !== 'https:' && !isLocal)
    return { fault: '`url` must start with https:// (or http:// for a loopback address).' }
  // `https://bank.example@evil.example` looks like another host.
  if (url.username !== '' || url.password !== '')
    return { fault: '`url` must not contain a user name or a password.' }
  return { mode: 'url', message, url: url.href, host: url.host }
}
