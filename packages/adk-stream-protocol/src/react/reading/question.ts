import { isRecord } from '../../protocol/guards.ts'
import type { RemoteRequestKind } from '../../protocol/message.ts'
import { readRemoteTitle } from '../../protocol/message.ts'
import type { Approval } from './approval.ts'
import { toDisplayName } from './display-name.ts'
import { findOptionName } from './edit-arguments.ts'

/** What the title of a question depends on. */
interface Question {
  readonly kind?: Approval['kind'] | undefined
  readonly title?: string | undefined
}

interface TitleLabels {
  readonly question: {
    readonly title: string
    readonly from: (asker: string) => string
    readonly remote: Readonly<Record<RemoteRequestKind, (agent: string) => string>>
  }
  readonly tool: { readonly names: Readonly<Record<string, string>> }
}

/** Returns the title of an approval. Says in the language of the page what a remote agent asks. */
export function toShownTitle(
  title: string | undefined,
  { question }: Pick<TitleLabels, 'question'>,
): string | undefined {
  const remote = title === undefined ? undefined : readRemoteTitle(title)
  return remote ? question.remote[remote.kind](remote.agent) : title
}

/** Returns the title of a question. That of an MCP server names the server, or its tool if the server has no name. */
export function toQuestionTitle(
  { kind, title }: Question,
  args: unknown,
  labels: TitleLabels,
): string {
  const { question, tool } = labels
  const asker = kind === 'elicitation' ? readAsker(args) : undefined
  if (asker === undefined) return toShownTitle(title, labels) ?? question.title
  return question.from(toDisplayName(asker, tool.names))
}

function readAsker(args: unknown): string | undefined {
  const server = isRecord(args) ? args['server'] : undefined
  return typeof server === 'string' ? server : readAskingTool(args)
}

/** Returns the name of the tool whose call asks, for a question of an MCP server. */
export function readAskingTool(args: unknown): string | undefined {
  const tool = isRecord(args) ? args['tool'] : undefined
  return typeof tool === 'string' ? tool : undefined
}

/** Returns an answer in the words of its form: the names of options, and yes or no. */
export function toShownAnswer(
  schema: unknown,
  answer: unknown,
  words: { readonly yes: string; readonly no: string },
): unknown {
  if (!isRecord(schema)) return answer
  const { type, properties, items } = schema
  if (typeof answer === 'boolean' && type === 'boolean') return answer ? words.yes : words.no
  if (Array.isArray(answer)) return answer.map((item) => toShownAnswer(items, item, words))
  if (!isRecord(answer)) return findOptionName(schema, answer) ?? answer
  const fields = isRecord(properties) ? properties : {}
  return Object.fromEntries(
    Object.entries(answer).map(([name, value]) => [
      name,
      Object.hasOwn(fields, name) ? toShownAnswer(fields[name], value, words) : value,
    ]),
  )
}
