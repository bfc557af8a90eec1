import type { ReactNode } from 'react'

import { useAdkLabels } from '../provider.tsx'
import { type Call, getToolName, isUnfinished, readFailure } from '../reading/call.ts'
import { toDisplayName } from '../reading/display-name.ts'
import { toLiteral } from '../../shared/literal-text.ts'
import { CallDetails, LiteralText } from './call-details.tsx'
import type { AdkLabels } from '../labels/labels.ts'
import type { Approval } from '../reading/approval.ts'

/**
 * Props of `ToolCard`.
 *
 * @inline
 */
export interface ToolCardProps {
  readonly call: Call
  /** What the call waits for inside it, as a sentence. */
  readonly waitsFor?: string | undefined
  /** What the call is about, next to its title. Default: its arguments in one line. */
  readonly summary?: string | undefined
  /** Shown above the details, for example the result in a form for people. */
  readonly children?: ReactNode
}

/**
 * Shows a tool call: its title and state, what it waits for, and on demand its arguments and result. `renderCall` may return one with
 * content of its own.
 */
export function ToolCard({ call, waitsFor, summary, children }: ToolCardProps) {
  const labels = useAdkLabels()
  const name = getToolName(call)
  const title = toDisplayName(name, labels.tool.names, call.title)
  const failure = readFailure(call)
  const state = describeCallState(call, labels)
  return (
    <div
      className="adk-tool"
      role="group"
      data-state={isUnfinished(call) ? 'input-available' : call.state}
      data-tool={name}
      data-tool-call={call.toolCallId}
      data-failed={failure !== undefined}
      aria-label={toLiteral(title)}
      // Focusable by script, and not by the Tab key.
      tabIndex={-1}
    >
      <header className="adk-tool-header">
        <span className="adk-dot" aria-hidden="true" />
        <LiteralText in="span" className="adk-title" text={title} />
        <LiteralText in="span" className="adk-tool-input" text={summary ?? summarise(call.input)} />
        <span className="adk-tool-state">
          {waitsFor === undefined ? state : labels.tool.waitingInside}
        </span>
      </header>
      <WaitsForNote waitsFor={waitsFor} />
      {failure?.reason && <LiteralText in="p" className="adk-failure" text={failure.reason} />}
      {children}
      <CallDetails call={call} />
    </div>
  )
}

/** Says what a call waits for inside it. The log announces it. */
export function WaitsForNote({ waitsFor }: Pick<ToolCardProps, 'waitsFor'>) {
  if (waitsFor === undefined) return null
  return <LiteralText in="p" className="adk-waits-for" text={waitsFor} />
}

/** Returns the state of a call in one or two words. */
export function describeCallState(
  call: Call,
  { tool }: AdkLabels,
  outcome?: Approval['outcome'],
): string {
  if (readFailure(call, outcome)) return tool.failed
  switch (call.state) {
    case 'input-streaming':
      return tool.preparing
    case 'input-available':
    case 'approval-responded':
      return tool.running
    case 'approval-requested':
      return tool.waiting
    case 'output-available':
      return isUnfinished(call) ? tool.running : tool.done
    case 'output-error':
      return tool.failed
    case 'output-denied':
      return tool.denied
  }
}

/** Joins the strings and numbers of the arguments to one line. */
function summarise(input: unknown): string {
  if (typeof input !== 'object' || input === null) return ''
  const values = Object.values(input).filter(
    (value) => typeof value === 'number' || (typeof value === 'string' && value !== ''),
  )
  return values.join(', ')
}
