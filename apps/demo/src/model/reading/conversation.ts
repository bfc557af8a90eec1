import type { Content, FunctionCall, FunctionResponse, Part } from 'gemini-emulator'

/** A call of the model and its result. */
export interface AnsweredCall {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  readonly response: Readonly<Record<string, unknown>>
  readonly willContinue: boolean
}

export interface Attachment {
  readonly mimeType: string
  /** Base64. Absent for a file given by URL. */
  readonly data?: string
}

/** The current request, and the calls and results since. */
export interface Conversation {
  /** The user's last text. Empty if there is none. */
  readonly request: string
  /** What other agents said and did since the request, as ADK describes it. Empty if there are none. */
  readonly context: string
  /** The user's earlier texts, oldest first. */
  readonly earlierRequests: readonly string[]
  readonly attachments: readonly Attachment[]
  /** Whether the model has not replied to the request yet. */
  readonly isRequestNew: boolean
  /** Calls made for the request, in order. */
  readonly calls: readonly FunctionCall[]
  /** The latest results, without a reply yet. */
  readonly answered: readonly AnsweredCall[]
  /** Calls of the request without a result. */
  readonly waiting: readonly FunctionCall[]
  /** All calls with a result, oldest first. */
  readonly history: readonly AnsweredCall[]
}

/** How ADK begins the text in which it describes to an agent what another agent said and did. */
const CONTEXT = 'For context:'

/** Reads the contents of a prompt. */
export function readConversation(contents: readonly Content[]): Conversation {
  const written = contents.map((content) => (content.role === 'model' ? '' : textOf(content)))
  const texts = written.map((text) => (text.startsWith(CONTEXT) ? '' : text))
  const requestAt = texts.findLastIndex(
    (text, index) => text !== '' || attachmentsOf(contents[index]).length > 0,
  )
  const requests = texts.filter((text) => text !== '')
  const lastModelAt = contents.findLastIndex(({ role }) => role === 'model')
  const calls = callsOf(contents.slice(requestAt === -1 ? 0 : requestAt))
  const pairs = pair(callsOf(contents), withoutReplaced(contents.flatMap(responsesOf)))
  const fresh = new Set(contents.slice(lastModelAt + 1).flatMap(responsesOf))
  const done = new Set(pairs.map(({ call }) => call))
  return {
    request: texts[requestAt] ?? '',
    context: written
      .slice(requestAt + 1)
      .filter((text) => text.startsWith(CONTEXT))
      .join('\n'),
    earlierRequests: texts[requestAt] === '' ? requests : requests.slice(0, -1),
    attachments: contents.slice(Math.max(lastModelAt + 1, 0)).flatMap(attachmentsOf),
    isRequestNew: requestAt > lastModelAt,
    calls,
    answered: pairs.filter(({ response }) => fresh.has(response)).map(toAnswered),
    waiting: calls.filter((call) => !done.has(call)),
    history: pairs.map(toAnswered),
  }
}

/** Leaves out partial responses whose call has a later response. */
function withoutReplaced(responses: readonly FunctionResponse[]): FunctionResponse[] {
  return responses.filter(
    ({ id, willContinue }, index) =>
      !willContinue || !responses.slice(index + 1).some((later) => later.id === id),
  )
}

interface Pair {
  readonly call: FunctionCall | undefined
  readonly response: FunctionResponse
}

/** Matches results and calls by id. A result without an id belongs to the oldest pending call of its name. */
function pair(calls: readonly FunctionCall[], responses: readonly FunctionResponse[]): Pair[] {
  const open = new Map<string, FunctionCall[]>()
  const keep = (key: string, call: FunctionCall): void => {
    open.set(key, [...(open.get(key) ?? []), call])
  }
  for (const call of calls)
    keep(call.id === undefined ? `name:${call.name}` : `id:${call.id}`, call)
  return responses.map((response) => {
    const byId = open.get(`id:${response.id ?? ''}`)?.[0]
    // A long-running call may have two results, the first one "pending".
    return { call: byId ?? open.get(`name:${response.name ?? ''}`)?.shift(), response }
  })
}

function toAnswered({ call, response }: Pair): AnsweredCall {
  return {
    name: response.name ?? call?.name ?? '',
    args: call?.args ?? {},
    response: response.response ?? {},
    willContinue: response.willContinue ?? false,
  }
}

function callsOf(contents: readonly Content[]): FunctionCall[] {
  return contents.flatMap((content) =>
    partsOf(content).flatMap(({ functionCall }) => functionCall ?? []),
  )
}

function responsesOf(content: Content): FunctionResponse[] {
  return partsOf(content).flatMap(({ functionResponse }) =>
    functionResponse === undefined ? [] : [functionResponse],
  )
}

function attachmentsOf(content: Content | undefined): Attachment[] {
  if (content === undefined || content.role === 'model') return []
  return partsOf(content).flatMap(({ inlineData, fileData }) => {
    if (inlineData !== undefined) {
      return [
        {
          mimeType: inlineData.mimeType ?? 'application/octet-stream',
          data: inlineData.data ?? '',
        },
      ]
    }
    return fileData === undefined
      ? []
      : [{ mimeType: fileData.mimeType ?? 'application/octet-stream' }]
  })
}

function textOf(content: Content): string {
  return partsOf(content)
    .flatMap(({ text, thought }) => (text === undefined || thought === true ? [] : [text]))
    .join('\n')
    .trim()
}

function partsOf(content: Content): readonly Part[] {
  return content.parts ?? []
}
