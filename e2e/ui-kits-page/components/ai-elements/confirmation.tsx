/** Stand-ins of AI Elements' `Confirmation`, whose source is not on npm: the same names, properties and conditions, without a look. */
import type { ToolUIPart } from 'ai'
import type { ComponentProps, PropsWithChildren } from 'react'
import { createContext, use } from 'react'

interface Decision {
  readonly approval?: ToolUIPart['approval'] | undefined
  readonly state: ToolUIPart['state']
}

const Current = createContext<Decision>({ state: 'input-streaming' })
const ANSWERED = new Set<ToolUIPart['state']>([
  'approval-responded',
  'output-denied',
  'output-available',
])

export function Confirmation({ children, ...decision }: PropsWithChildren<Decision>) {
  if (!decision.approval) return null
  return (
    <Current value={decision}>
      <div role="alert">{children}</div>
    </Current>
  )
}

export function ConfirmationRequest({ children }: PropsWithChildren) {
  return use(Current).state === 'approval-requested' ? children : null
}

export function ConfirmationAccepted({ children }: PropsWithChildren) {
  const { approval, state } = use(Current)
  return approval?.approved === true && ANSWERED.has(state) ? children : null
}

export function ConfirmationRejected({ children }: PropsWithChildren) {
  const { approval, state } = use(Current)
  return approval?.approved === false && ANSWERED.has(state) ? children : null
}

export function ConfirmationActions(props: ComponentProps<'div'>) {
  return use(Current).state === 'approval-requested' ? <div {...props} /> : null
}

export function ConfirmationAction(props: ComponentProps<'button'>) {
  return <button type="button" {...props} />
}
