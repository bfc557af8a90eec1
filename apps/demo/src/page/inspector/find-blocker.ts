import type { AdkUIMessage, ConnectionState } from 'adk-stream-protocol/client'

/** What a conversation waits for right now. */
export type Waiting =
  | { readonly for: 'connection'; readonly retryAt?: number }
  | { readonly for: 'decision'; readonly toolName: string; readonly deadline?: number }
  | { readonly for: 'tool'; readonly toolName: string }
  | { readonly for: 'model' }

interface Situation {
  readonly messages: readonly AdkUIMessage[]
  readonly busy: boolean
  readonly connection: ConnectionState
}

/** Says why nothing happens; nothing when it is the person's turn. What a person can do something about comes first. */
export function findBlocker({ messages, busy, connection }: Situation): Waiting | undefined {
  if (connection.state === 'lost') {
    const { retryAt } = connection
    return { for: 'connection', ...(retryAt !== undefined && { retryAt }) }
  }
  const asked = messages.flatMap(findQuestions)
  const [first] = asked
  if (first) return first
  const running = messages.at(-1)?.parts.find(isRunning)
  if (running) return { for: 'tool', toolName: nameOf(running) }
  return busy ? { for: 'model' } : undefined
}

type Part = AdkUIMessage['parts'][number]
type ToolPart = Extract<Part, { toolCallId: string }>

function findQuestions({ parts }: AdkUIMessage): Waiting[] {
  return parts.flatMap((part) => {
    if (!isCall(part) || part.state !== 'approval-requested') return []
    const terms = parts.find(
      (other) => other.type === 'data-approval' && other.data.toolCallId === part.toolCallId,
    )
    const data = terms?.type === 'data-approval' ? terms.data : undefined
    // It was decided elsewhere, and its outcome is on the way.
    if (data && data.state !== 'requested') return []
    const deadline = data?.deadline
    const named = { for: 'decision', toolName: nameOf(part) } as const
    return [{ ...named, ...(deadline !== undefined && { deadline }) }]
  })
}

function isCall(part: Part): part is ToolPart {
  return 'toolCallId' in part
}

function isRunning(part: Part): part is ToolPart {
  return isCall(part) && (part.state === 'input-available' || part.state === 'approval-responded')
}

function nameOf(part: ToolPart): string {
  return part.type === 'dynamic-tool' ? part.toolName : part.type.slice('tool-'.length)
}
