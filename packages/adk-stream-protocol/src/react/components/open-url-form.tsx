import { isRecord } from '../../protocol/guards.ts'
import { useAdkLabels } from '../provider.tsx'
import type { Approval, Decision } from '../reading/approval.ts'
import { toLiteral } from '../reading/literal-text.ts'
import { LiteralText } from './arguments-table.tsx'

/** Returns the URL that an MCP server asks a person to open. Returns undefined for any other question. */
export function readUrlQuestion(
  { kind, schema }: { readonly kind?: Approval['kind'] | undefined; readonly schema?: unknown },
  args: unknown,
): URL | undefined {
  const url = isRecord(args) ? args['url'] : undefined
  if (kind !== 'elicitation' || schema !== undefined || typeof url !== 'string') return undefined
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  return parsed && /^https?:$/.test(parsed.protocol) ? parsed : undefined
}

/** Returns the page at which a remote agent asks a person to sign in. Only https is safe. Returns undefined for any other question. */
function readSignInPage({ kind }: SignInLinkProps['approval'], args: unknown): URL | undefined {
  const url = isRecord(args) ? args['url'] : undefined
  if (kind !== 'input' || typeof url !== 'string' || !URL.canParse(url)) return undefined
  const parsed = new URL(url)
  return parsed.protocol === 'https:' ? parsed : undefined
}

interface SignInLinkProps {
  readonly approval: { readonly kind?: Approval['kind'] | undefined }
  readonly args: unknown
}

/** Links to the page at which a remote agent asks a person to sign in. To open it is no answer. */
export function SignInLink({ approval, args }: SignInLinkProps) {
  const { question } = useAdkLabels()
  const url = readSignInPage(approval, args)
  if (!url) return null
  return (
    <>
      <ShownUrl url={url} />
      <p>
        <a className="adk-button" href={url.href} target="_blank" rel="noopener noreferrer">
          {question.openUrl(toLiteral(url.host))}
        </a>
      </p>
    </>
  )
}

function ShownUrl({ url }: { readonly url: URL }) {
  const { question } = useAdkLabels()
  return (
    <>
      <p>
        {question.asksToOpen} <strong>{toLiteral(url.host)}</strong>
      </p>
      <p>
        <LiteralText text={url.href} />
      </p>
    </>
  )
}

interface OpenUrlFormProps {
  readonly url: URL
  readonly hidden: boolean
  readonly onDecide: (decision: Decision) => void
}

/** Asks a person to open a URL. It opens only by their click, which is the answer. */
export function OpenUrlForm({ url, hidden, onDecide }: OpenUrlFormProps) {
  const { question } = useAdkLabels()
  return (
    <div className="adk-approval-form" hidden={hidden}>
      <ShownUrl url={url} />
      <div className="adk-actions">
        <a
          className="adk-button"
          href={url.href}
          target="_blank"
          rel="noopener noreferrer"
          onClick={() => onDecide({ approved: true })}
        >
          {question.openUrl(toLiteral(url.host))}
        </a>
        <button
          type="button"
          className="adk-button adk-outlined"
          onClick={() => onDecide({ approved: false })}
        >
          {question.decline}
        </button>
      </div>
    </div>
  )
}
