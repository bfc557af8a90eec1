import type { AdkUIMessage } from 'adk-stream-protocol/client'
import type { Call, UseAdkChatOptions } from 'adk-stream-protocol/react'
import type { ChatTransport } from 'ai'
import type { LucideIcon } from 'lucide-react'
import type { ComponentType, ReactNode } from 'react'

import type { Labels } from '../i18n/labels.ts'
import type { Language } from '../i18n/language.tsx'

/**
 * What an application adds to the page. Without a plug-in, the page works with any agent: it shows calls by the names and the schemas of their
 * tools. All parts are optional.
 */
export interface StudioPlugin {
  /** Texts that replace those of the page. */
  readonly texts?: Readonly<Record<Language, PluginTexts>>
  /** Describes a call: what it will do, or what it did. Returns undefined for other calls. */
  readonly describeCall?: (call: DescribedCall) => string | undefined
  /** Renders a call as a card of its own. Returns undefined for other calls. */
  readonly renderCall?: (toolName: string, call: Call) => ReactNode | undefined
  /** The tools that run in the page. If one throws, the model receives the message of the error. */
  readonly browserTools?: NonNullable<UseAdkChatOptions['tools']>
  /** Modes in addition to the chat and the voice of the agent. */
  readonly modes?: readonly PluginMode[]
  /** Components in these places of the page. */
  readonly slots?: Partial<Readonly<Record<Slot, ComponentType>>>
  /** Called when the person or the model starts or stops to speak. */
  readonly onSpeaking?: (isSpeaking: boolean) => void
}

/** `top-bar` and `settings` are for controls, `model` and `approvals` for notes, and `dialogs` is above everything else. */
export type Slot = 'top-bar' | 'settings' | 'model' | 'approvals' | 'dialogs'

/** The texts that a plug-in may replace, in one language. */
export type PluginTexts = Partial<
  Pick<
    Labels,
    | 'tagline'
    | 'intro'
    | 'emulated'
    | 'emulatedVoice'
    | 'toolNames'
    | 'argumentNames'
    | 'starts'
    | 'suggestions'
  >
>

/** A call in a state of its life. */
export interface DescribedCall {
  readonly toolName: string
  readonly input: unknown
  /** `pending`, `succeeded`, `failed`, `denied` and others. */
  readonly phase: string
  readonly language: Language
}

/** A mode that does not use the agent. The page stores its chat until the tab is closed. */
export interface PluginMode {
  /** As in the `modes` of `GET /studio`. */
  readonly name: string
  readonly transport: ChatTransport<AdkUIMessage>
  readonly texts: Readonly<Record<Language, ModeTexts>>
}

/** The texts of a mode. */
export interface ModeTexts {
  readonly name: string
  /** The mode in the words of developers. */
  readonly connection: string
  readonly explanation: string
}

/** A starting point of an empty chat. */
export interface Start {
  readonly icon: LucideIcon
  readonly title: string
  readonly explanation: string
  /** The message that it sends. Without one, it switches to the voice. */
  readonly text?: string
}

/** A group of suggestions in an empty chat. */
export interface SuggestionGroup {
  readonly title: string
  /** The group is shown on request. */
  readonly isMore?: true
  readonly suggestions: readonly Suggestion[]
}

export interface Suggestion {
  readonly text: string
  /** The suggestion opens the file picker first. */
  readonly needsPicture?: true
  /** The suggestion needs a page that can sign in. */
  readonly needsSignIn?: true
  /** The modes that support it. Default: all. A live model cannot wait for an approval inside another agent. */
  readonly modes?: readonly string[]
}
