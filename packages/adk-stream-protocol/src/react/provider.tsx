import type { ReactNode } from 'react'
import { createContext, use } from 'react'
import type { UIMessage } from 'ai'

import type { AdkApi } from '../client/api/adk-api.ts'
import { useSameObject } from './use-stable.ts'
import { en } from './labels/en.ts'
import type { AdkLabels } from './labels/labels.ts'
import type { Arguments, Call, CallPhase } from './reading/call.ts'
import { quoteValues } from './reading/quoted-values.ts'

/** Custom renderers of an application. Pass stable functions: a new function renders every component that uses it again. */
interface AdkRenderers {
  /** Renders text of the assistant, for example as Markdown. Default: a paragraph of plain text. */
  readonly renderText?: ((text: string, options: { streaming: boolean }) => ReactNode) | undefined
  /**
   * Renders complete code, for example with colours or as a diagram, in place of `<pre>`. `language` is what the model wrote, or empty.
   * Return `undefined` for plain text. Called by `CodeBlock`.
   */
  readonly renderCode?: ((code: string, language: string) => ReactNode | undefined) | undefined
  /**
   * Describes a call for your users: what it would do, or what it did (`phase`). Return `undefined` for the text of the
   * policy, or for the default text.
   */
  readonly describeCall?:
    | ((toolName: string, args: Arguments, phase: CallPhase) => string | undefined)
    | undefined
  /** Renders a call that needs no approval. Return `undefined` for the default card. */
  readonly renderCall?: ((toolName: string, call: Call) => ReactNode | undefined) | undefined
  /** Renders a `data-*` part. Return `undefined` for the default view. */
  readonly renderData?: ((part: UIMessage['parts'][number]) => ReactNode | undefined) | undefined
}

/**
 * A link with which another person can decide an approval once.
 *
 * @inline
 */
export interface SharedLink {
  /** The URL with the secret token, from `toApprovalLinkUrl`. */
  readonly url: string
  /** In ms since 1970. */
  readonly expiresAt: number
}

/** Creates a link for an approval that waits for another person. */
type ShareApproval = (approvalId: string) => Promise<SharedLink>

/**
 * Language and renderers of all components inside the provider.
 *
 * @inline
 */
export interface AdkProviderProps extends AdkRenderers {
  /** The labels: `ja`, or your own. To change a few, spread a built-in set: `{ ...en, … }`. Default `en`. */
  readonly labels?: AdkLabels | undefined
  /**
   * Begins sign-ins, for tools that need the account of the person, and reads what an edited call would do. Pass your `AdkApi`. Default:
   * people can only decline a sign-in, and the card shows no preview of an edited call.
   */
  readonly api?: CardApi | undefined
  /** The time at which countdowns stand, in ms since 1970, for a recorded conversation. Default: they run with the clock. */
  readonly time?: number | undefined
  /**
   * Creates a link for an approval that waits for another person. Cards and inboxes then have a button that shows it, as text and as a
   * QR code. Default: there is no button.
   */
  readonly shareApproval?: ShareApproval | undefined
  readonly children: ReactNode
}

/** The part of `AdkApi` that the cards use. */
type CardApi = Pick<AdkApi, 'signIn'> & Partial<Pick<AdkApi, 'previewEdit' | 'listNotices'>>

interface AdkSettings
  extends AdkRenderers, Pick<AdkProviderProps, 'api' | 'time' | 'shareApproval'> {
  readonly labels: AdkLabels
}

const Settings = createContext<AdkSettings>({ labels: en })

/** Sets the language and the renderers of the components inside it. Without a provider, components are in English. */
export function AdkProvider(props: AdkProviderProps) {
  const { children, labels = en, time, api, shareApproval } = props
  const { renderText, renderCode, describeCall, renderCall, renderData } = props
  const settings = useSameObject({
    labels,
    renderText,
    renderCode,
    describeCall,
    renderCall,
    renderData,
    time,
    api,
    shareApproval,
  })
  return <Settings value={settings}>{children}</Settings>
}

/** Returns the labels of the nearest `AdkProvider`, for your own components. */
export function useAdkLabels(): AdkLabels {
  return use(Settings).labels
}

/** Returns the settings of the nearest `AdkProvider`. */
export function useAdkSettings(): AdkSettings {
  return use(Settings)
}

/** Returns the application's description of a call, that of the policy, or the default one. */
export function useCallDescription(
  toolName: string,
  args: Arguments,
  { phase, headline }: { readonly phase: CallPhase; readonly headline?: string | undefined },
): { readonly description: string; readonly isDescribed: boolean } {
  const { describeCall, labels } = use(Settings)
  const own = describeCall?.(toolName, args, phase) ?? headline
  return {
    description: own ?? labels.tool.describe(toolName),
    isDescribed: own !== undefined,
  }
}

/** Like `useCallDescription`, for a call that a person may have edited. Its default headline says nothing about the arguments. */
export function useEditedDescription(
  {
    name,
    title,
    isEdited,
  }: { readonly name: string; readonly title: string; readonly isEdited: boolean },
  args: Arguments,
  call: Parameters<typeof useCallDescription>[2],
): ReturnType<typeof useCallDescription> {
  const { approval } = useAdkLabels()
  const described = useCallDescription(name, args, call)
  const isUnknown = isEdited && !described.isDescribed
  return isUnknown ? { ...described, description: approval.editedCall(title) } : described
}

/** Returns a function that describes pending calls in one line of plain text, with values that could mislead in quotation marks. */
export function useDescribeCall(): (
  toolName: string,
  args: Arguments,
  headline?: string,
) => string {
  const { describeCall, labels } = use(Settings)
  return (toolName, args, headline) => {
    const described = describeCall?.(toolName, args, 'pending') ?? headline
    return quoteValues(described ?? labels.tool.describe(toolName), args, labels.approval.quote)
  }
}
