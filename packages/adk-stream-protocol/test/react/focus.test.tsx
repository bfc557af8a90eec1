import { act, render, screen } from '@testing-library/react'
import { userEvent } from '@testing-library/user-event'
import type { ReactNode } from 'react'
import { expect, test } from 'vitest'

import {
  AdkProvider,
  Composer,
  ConnectionNotice,
  MessageList,
  ProblemCard,
  VoiceStage,
} from '../../src/react/index.ts'
import type { AdkUIMessage } from '../../src/client/index.ts'
import { answer, approvalPart, payment } from './support/messages.ts'
import { TestVoice } from './support/test-voice.ts'

const user = userEvent.setup()
const nothing = (): void => undefined

/** Shows something above a message input. */
function show(first: ReactNode) {
  const view = render(<Page>{first}</Page>)
  return (next: ReactNode) => view.rerender(<Page>{next}</Page>)
}

function Page({ children }: { readonly children: ReactNode }) {
  return (
    <AdkProvider>
      {children}
      <Composer status="ready" onSend={nothing} />
    </AdkProvider>
  )
}

const button = (name: string): HTMLElement => screen.getByRole('button', { name })
const focus = (name: string): void => act(() => button(name).focus())
const input = (): HTMLElement => screen.getByRole('textbox', { name: 'Message' })
const reply = answer({ type: 'text', text: 'Hello.' })

test('[RE881] the focus moves to the message input when a problem disappears', () => {
  const change = show(<ProblemCard problem={{ kind: 'unavailable' }} onRecover={nothing} />)
  focus('Try again')
  change(null)
  expect(document.activeElement).toBe(input())
})

test('[RE881] the focus moves to the message input when the reply is regenerated', () => {
  const change = show(<MessageList messages={[reply]} onRegenerate={nothing} />)
  focus('Try again')
  change(<MessageList messages={[reply]} status="submitted" onRegenerate={nothing} />)
  expect(document.activeElement).toBe(input())
})

test('[RE881] the focus moves to the message input when the connection is back', () => {
  const chat = { messages: [], status: 'ready', unconfirmed: new Set<string>(), reconnect: nothing }
  const notice = (state: 'lost' | 'open') => (
    // The notice reads nothing else of the chat.
    <ConnectionNotice chat={{ ...chat, connection: { state } } as never} />
  )
  const change = show(notice('lost'))
  focus('Try now')
  change(notice('open'))
  expect(document.activeElement).toBe(input())
})

test('[RE881] the focus stays where it is when something else disappears', () => {
  const change = show(
    <>
      <ProblemCard problem={{ kind: 'unavailable' }} onRecover={nothing} />
      <button type="button">Other</button>
    </>,
  )
  focus('Other')
  change(
    <>
      {null}
      <button type="button">Other</button>
    </>,
  )
  expect(document.activeElement).toBe(button('Other'))
})

interface WaitingListProps {
  readonly message: AdkUIMessage
  /** The approvals whose decisions wait for the connection. */
  readonly waiting: readonly string[]
}

function WaitingList({ message, waiting }: WaitingListProps) {
  return (
    <MessageList
      messages={[message]}
      isConnected={false}
      unconfirmed={new Set(waiting)}
      onCancelDecision={() => true}
    />
  )
}

test('[RE881] the focus stays in the card when a decision is taken back', async () => {
  const approval = { id: 'approval-1', approved: true }
  const decided = answer(payment({ state: 'approval-responded', approval }), approvalPart())
  const change = show(<WaitingList message={decided} waiting={['approval-1']} />)
  focus('Take back')
  change(<WaitingList message={answer(payment(), approvalPart())} waiting={[]} />)
  expect(document.activeElement).toBe(screen.getByRole('group', { name: /Payment/ }))
})

test('[RE881] the focus stays in the card of a question when it is answered, and when a form closes', async () => {
  const part = approvalPart({ kind: 'input', schema: { type: 'object', properties: {} } })
  const asked = answer(payment({ state: 'input-available' }), part)
  const answered = answer(
    payment({ state: 'output-available', output: {} }),
    approvalPart({ kind: 'input', state: 'approved' }),
  )
  const change = show(<MessageList messages={[asked]} />)
  await user.click(button('Decline'))
  await user.keyboard('{Escape}')
  const card = screen.getByRole('group')
  expect(document.activeElement).toBe(card)
  focus('Continue')
  change(<MessageList messages={[answered]} />)
  expect(document.activeElement).not.toBe(document.body)
  expect(card.contains(document.activeElement)).toBe(true)
})

test('[RE881] the focus stays at the voice when it is interrupted or ends', () => {
  const voice = new TestVoice()
  voice.state = { state: 'model-speaking', mode: 'hands-free', muted: false, connected: true }
  show(<VoiceStage voice={voice} />)
  focus('Interrupt the assistant')
  act(() => voice.become({ ...voice.state, state: 'listening' }))
  expect(document.activeElement).toBe(button('Mute the microphone'))
  focus('End the conversation')
  act(() => voice.become({ ...voice.state, state: 'off' }))
  expect(document.activeElement).toBe(button('Talk hands-free'))
})
