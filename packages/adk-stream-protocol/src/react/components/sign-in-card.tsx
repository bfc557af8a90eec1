import type { ReactNode, SyntheticEvent } from 'react'
import { useId, useState } from 'react'

import type { SignInRequest } from '../../client/api/adk-api.ts'
import type { SignInTerms } from '../../protocol/sign-in-terms.ts'
import { useAdkLabels, useAdkSettings } from '../provider.tsx'
import type { Decision } from '../reading/approval.ts'
import { isPending } from '../reading/approval.ts'
import { getToolName } from '../reading/call.ts'
import { toDisplayName } from '../reading/display-name.ts'
import { toLiteral } from '../../shared/literal-text.ts'
import { toServerError } from '../reading/problem.ts'
import type { ApprovalCardProps } from './approval-card.tsx'
import { LiteralText, CallDetails } from './call-details.tsx'
import { QuestionFrame } from './question-card.tsx'
import { OutlinedButton } from './buttons.tsx'

/** Shows a call that waits until the person has signed in to a service. */
export function SignInCard(props: ApprovalCardProps) {
  const { call, approval, onDecide, refusal, waitingDecision, onCancelDecision } = props
  const { signIn: labels } = useAdkLabels()
  const { state, signIn, reason } = approval
  const status = state === 'requested' ? labels.waiting : labels.states[state]
  const service = toLiteral(signIn?.label ?? '')
  const title = state === 'requested' ? labels.title : labels.endedTitle
  return (
    <QuestionFrame
      className="adk-sign-in"
      {...{ call, approval, refusal, title, waitingDecision, onCancelDecision }}
      label={`${title}: ${service}`}
      status={describe(status, service, reason)}
      details={<CallDetails call={call} />}
    >
      {signIn && (
        <SignInForm
          approvalId={approval.approvalId}
          signIn={signIn}
          toolName={getToolName(call)}
          hidden={!isPending(call, approval) || waitingDecision !== undefined}
          onDecide={onDecide}
        />
      )}
    </QuestionFrame>
  )
}

function describe(status: string, service: string, reason: string | undefined): string {
  return [status, service && `(${service})`, reason && toLiteral(reason)].filter(Boolean).join(' ')
}

interface SignInFormProps {
  readonly approvalId: string
  readonly signIn: SignInTerms
  readonly toolName: string
  readonly hidden: boolean
  readonly onDecide: (decision: Decision) => void
}

/** How far the sign-in has come. */
type Progress =
  | { readonly state: 'idle' }
  | { readonly state: 'opening' }
  | { readonly state: 'opened'; readonly url: string; readonly isBlocked: boolean }
  | { readonly state: 'failed'; readonly message: string }

/** Begins a sign-in, or declines it. */
export function SignInForm({ approvalId, signIn, toolName, hidden, onDecide }: SignInFormProps) {
  const { signIn: labels, tool } = useAdkLabels()
  const { api } = useAdkSettings()
  const [progress, setProgress] = useState<Progress>({ state: 'idle' })
  const service = toLiteral(signIn.label)
  const decline = (
    <OutlinedButton onClick={() => onDecide({ approved: false })}>{labels.decline}</OutlinedButton>
  )
  const begin = async (request: SignInRequest): Promise<void> => {
    if (!api) return
    // Browsers allow a window only while they handle the click.
    const popup = signIn.type === 'apiKey' ? null : openWindow()
    setProgress({ state: 'opening' })
    try {
      const url = await api.signIn(approvalId, request)
      if (url === undefined) return setProgress({ state: 'idle' })
      if (popup) popup.location.href = url
      setProgress({ state: 'opened', url, isBlocked: !popup })
    } catch (error) {
      popup?.close()
      setProgress({ state: 'failed', message: toServerError(error).message })
    }
  }
  return (
    <div className="adk-approval-form" hidden={hidden}>
      <p className="adk-call-description">
        {labels.asks(service, toLiteral(toDisplayName(toolName, tool.names)))}
      </p>
      {signIn.scopes.length > 0 && (
        <p className="adk-help">
          {labels.scopes} <LiteralText text={signIn.scopes.join(', ')} />
        </p>
      )}
      {!api && <p className="adk-failure">{labels.unavailable}</p>}
      {signIn.type === 'apiKey' ? (
        <ApiKeyForm
          signIn={signIn}
          isDisabled={!api || progress.state === 'opening'}
          onSubmit={(apiKey) => void begin({ apiKey })}
          decline={decline}
        />
      ) : (
        <div className="adk-actions">
          <button
            type="button"
            className="adk-button adk-primary"
            disabled={!api || progress.state === 'opening'}
            onClick={() => void begin({})}
          >
            {labels.start(service)}
          </button>
          <OutlinedButton
            disabled={!api || progress.state === 'opening'}
            onClick={() => void begin({ prompt: 'login' })}
          >
            {labels.another}
          </OutlinedButton>
          {decline}
        </div>
      )}
      <div role="status" className="adk-help">
        <ProgressText progress={progress} service={service} />
      </div>
    </div>
  )
}

function ProgressText({
  progress,
  service,
}: {
  readonly progress: Progress
  readonly service: string
}) {
  const { signIn: labels } = useAdkLabels()
  switch (progress.state) {
    case 'idle':
      return null
    case 'opening':
      return labels.opening
    case 'opened':
      return (
        <>
          {progress.isBlocked ? labels.blocked : labels.opened}{' '}
          <a href={progress.url} target="_blank" rel="noopener noreferrer">
            {labels.link(service)}
          </a>
        </>
      )
    case 'failed':
      return (
        <span className="adk-failure">
          {labels.failed} <LiteralText text={progress.message} />
        </span>
      )
  }
}

interface ApiKeyFormProps {
  readonly signIn: SignInTerms
  readonly isDisabled: boolean
  readonly onSubmit: (apiKey: string) => void
  /** The button that declines. */
  readonly decline: ReactNode
}

function ApiKeyForm({ signIn, isDisabled, onSubmit, decline }: ApiKeyFormProps) {
  const { signIn: labels } = useAdkLabels()
  const [apiKey, setApiKey] = useState('')
  const id = useId()
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault()
    if (apiKey.trim() === '') return
    onSubmit(apiKey.trim())
    // The page keeps no key.
    setApiKey('')
  }
  return (
    <form onSubmit={submit} autoComplete="off">
      <label htmlFor={id}>{labels.apiKey(toLiteral(signIn.label))}</label>
      <input
        id={id}
        type="password"
        autoComplete="off"
        value={apiKey}
        maxLength={4_096}
        aria-describedby={signIn.help === undefined ? undefined : `${id}-help`}
        onChange={(event) => setApiKey(event.target.value)}
      />
      {signIn.help !== undefined && (
        <p className="adk-help" id={`${id}-help`}>
          <LiteralText text={signIn.help} />
        </p>
      )}
      <div className="adk-actions">
        <button type="submit" className="adk-button adk-primary" disabled={isDisabled}>
          {labels.send}
        </button>
        {decline}
      </div>
    </form>
  )
}

/** Opens an empty window. Returns null if the browser blocks it. */
function openWindow(): Window | null {
  const popup = window.open('', '_blank', 'popup,width=520,height=680')
  // The provider must not be able to navigate this page.
  if (popup) popup.opener = null
  return popup
}
