import type { AdkUIMessage, ConnectionState } from 'adk-stream-protocol/client'

/** What a conversation is waiting for. */
export type Blocker =
  | { readonly for: 'connection'; readonly retryAt?: number }
  | { readonly for: 'decision'; readonly toolName: string; readonly deadline?: number }
  | { readonly for: 'tool'; readonly toolName: string }
  | { readonly for: 'model' }

interface ConversationState {
  readonly messages: readonly AdkUIMessage[]
  readonly busy: boolean
  readonly connection: ConnectionState
}

/** Returns what the conversation is waiting for, or undefined if it is the person's turn. Things that a person can change come first. */
export function findBlocker({
  messages,
  busy,
  connection,
}: ConversationState): Blocker | undefined {
  if (connection.state === 'lost') {
    const { retryAt } = connection
    return { for: 'connection', ...(retryAt !== undefined && { retryAt }) }
  }
  const [first] = messages.flatMap(findPendingApprovals)
  if (first) return first
  const running = messages.at(-1)?.parts.find(isRunning)
  if (running) return { for: 'tool', toolName: nameOf(running) }
  return busy ? { for: 'model' } : undefined
}

type Part = AdkUIMessage['parts'][number]
type ToolPart = Extract<Part, { toolCallId: string }>

function findPendingApprovals({ parts }: AdkUIMessage): Blocker[] {
  return parts.flatMap((part) => {
    if (!isCall(part) || part.state !== 'approval-requested') return []
    const approval = parts.find(
      (other) => other.type === 'data-approval' && other.data.toolCallId === part.toolCallId,
    )
    const data = approval?.type === 'data-approval' ? approval.data : undefined
    // Decided elsewhere. The outcome follows.
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
