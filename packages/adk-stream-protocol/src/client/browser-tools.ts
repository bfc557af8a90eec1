import type { AttachedChat } from './attach-chat.ts'
import { claimCall } from './claim-call.ts'
import type { MessageView, PartView } from './answers.ts'
import { approvalState } from './message-edits.ts'

/** A tool that runs in the page: gets the arguments of the call, gives its result. */
export type BrowserToolFunction = (input: never) => unknown

/** A tool of the page that a person is asked about first. */
export interface GatedBrowserTool {
  readonly run: BrowserToolFunction
  /** Whether it never runs without an approval, whatever the agent declares. Default false. */
  readonly afterApproval?: boolean
}

/** Functions by tool name. */
export type BrowserTools = Readonly<Record<string, BrowserToolFunction | GatedBrowserTool>>

/**
 * Runs the calls of browser tools of a chat, each once, and gives their results to the model; what a tool throws is told as its
 * error. Give back ends it.
 */
export function runBrowserTools(attached: AttachedChat, tools: BrowserTools): () => void {
  // By chat, and not by this call: an effect that runs twice is one page with one chat.
  const begun = BEGUN.get(attached.chat) ?? new Set<string>()
  BEGUN.set(attached.chat, begun)
  const look = (): void => {
    for (const message of attached.chat.messages) {
      for (const part of message.parts) {
        const { toolCallId } = part
        const name = part.type.startsWith('tool-') ? part.type.slice('tool-'.length) : ''
        const tool = Object.hasOwn(tools, name) ? tools[name] : undefined
        if (!tool || toolCallId === undefined || begun.has(toolCallId)) continue
        if (!mayRun(part, message, { attached, tool })) continue
        begun.add(toolCallId)
        const run = (): unknown => callTool(tool, part)
        void claimCall(toolCallId).then((isOurs) =>
          isOurs ? runTool(attached, { tool: name, toolCallId, run }) : undefined,
        )
      }
    }
  }
  // A chunk is told before the chat has it.
  const stop = attached.onProgress(() => setTimeout(look, 0))
  look()
  return stop
}

const BEGUN = new WeakMap<object, Set<string>>()

interface Candidate {
  readonly attached: AttachedChat
  readonly tool: BrowserToolFunction | GatedBrowserTool
}

function mayRun(part: PartView, message: MessageView, { attached, tool }: Candidate): boolean {
  const { state, approval, toolCallId = '' } = part
  const asked = approvalState(message.parts, toolCallId)
  // Whether it is enough that this person said yes, the server knows.
  if (state === 'approval-responded') return approval?.approved === true && asked === 'approved'
  if (state !== 'input-available') return false
  if (asked !== undefined) return asked === 'approved'
  const mustBeAsked = typeof tool !== 'function' && tool.afterApproval === true
  // While its message is being written, a question may still come.
  return !mustBeAsked && (attached.isOffered(toolCallId) || !attached.isWriting(message.id))
}

function callTool(tool: BrowserToolFunction | GatedBrowserTool, part: PartView): unknown {
  const run = typeof tool === 'function' ? tool : tool.run
  // The arguments fit the tool's schema: the server has checked them.
  return run(('input' in part ? part.input : undefined) as never)
}

interface Call {
  readonly tool: string
  readonly toolCallId: string
  readonly run: () => unknown
}

async function runTool({ chat }: AttachedChat, { tool, toolCallId, run }: Call): Promise<void> {
  let output: unknown
  try {
    output = (await run()) ?? null
  } catch (error) {
    const errorText = error instanceof Error ? error.message : String(error)
    await chat.addToolOutput({ state: 'output-error', tool, toolCallId, errorText })
    return
  }
  await chat.addToolOutput({ tool, toolCallId, output })
}
