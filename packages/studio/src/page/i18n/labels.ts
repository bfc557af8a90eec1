import type { ModeTexts, Start, SuggestionGroup } from '../plugin/plugin.ts'
import type { AgentMode, Theme } from '../settings.ts'
import type { ShortcutName } from '../shell/shortcuts.ts'

/** All labels of the page in one language. */
export interface Labels {
  readonly title: string
  readonly tagline: string
  readonly intro: string
  readonly newChat: string
  readonly skipToInput: string
  readonly placeholder: string
  readonly reload: string
  readonly latest: string
  readonly loading: string
  readonly unreadableTitle: string
  readonly unreadableText: string
  readonly missingTitle: string
  readonly missingText: string
  readonly suggestionsLabel: string
  /** Explains that the emulator replies instead of a model. */
  readonly emulated: string
  /** The same for a conversation by voice. */
  readonly emulatedVoice: string
  /** Display names of tools and agents. */
  readonly toolNames: Readonly<Record<string, string>>
  /** Display names of arguments. */
  readonly argumentNames: Readonly<Record<string, string>>
  /** The starting points of an empty chat. */
  readonly starts: readonly Start[]
  readonly suggestions: readonly SuggestionGroup[]
  readonly shell: ShellLabels
}

/** Labels of the page around the conversation. */
interface ShellLabels {
  readonly close: string
  readonly cancel: string
  readonly chats: {
    readonly label: string
    readonly show: string
    readonly hide: string
    readonly search: string
    readonly none: string
    readonly noneFound: string
    readonly today: string
    readonly earlier: string
    readonly running: string
    readonly pending: (count: number) => string
    readonly options: (title: string) => string
    readonly rename: string
    readonly newName: string
    readonly delete: string
    readonly deleteTitle: string
    readonly deleteText: (title: string) => string
    readonly problems: Readonly<Record<'list' | 'rename' | 'delete', string>>
    readonly untitled: string
  }
  readonly mode: {
    readonly label: string
    readonly connection: string
    readonly texts: Readonly<Record<AgentMode, ModeTexts>>
  }
  /** The choice of the agent of a new chat. */
  readonly agents: { readonly choose: string }
  /** The choice of the person for whom the page is used. */
  readonly people: {
    readonly label: string
    readonly withRoles: (name: string, roles: string) => string
    readonly explanation: string
  }
  /** The code of the agent could not be loaded again. */
  readonly problem: { readonly title: string; readonly text: string; readonly code: string }
  /** The mark of the server instance that responded last. */
  readonly instance: { name(name: string): string; readonly explanation: string }
  readonly inspector: {
    readonly title: string
    readonly show: string
    readonly hide: string
    readonly messages: string
  }
  readonly settings: {
    readonly title: string
    readonly language: string
    readonly theme: string
    readonly themes: Readonly<Record<Theme, string>>
    readonly notifications: string
    readonly notificationsOff: string
    readonly notificationsOn: string
    /** The browser is told while no page is open. */
    readonly notificationsPush: string
    readonly notificationsFailed: string
    /** The browser does not allow notifications. */
    readonly notificationsBlocked: string
    readonly shortcuts: string
    /** The services that the person has signed in to. */
    readonly signIns: string
    readonly signedInAs: (service: string, account: string) => string
    readonly signOut: (service: string) => string
    readonly signedOut: (service: string) => string
    /** The credential is deleted here, and the service did not confirm that it is invalid. */
    readonly notRevoked: (service: string) => string
    readonly notSignedOut: string
  }
  readonly shortcuts: {
    readonly title: string
    readonly names: Readonly<Record<ShortcutName | 'send' | 'newLine' | 'close', string>>
  }
  readonly composer: {
    readonly attach: string
    readonly pictures: string
    readonly remove: (name: string) => string
    readonly drop: string
    readonly problems: {
      readonly type: (name: string) => string
      readonly size: (name: string, maxMegabytes: number) => string
      readonly total: (name: string) => string
      readonly count: (max: number) => string
      readonly unreadable: (name: string) => string
    }
  }
  readonly actions: {
    readonly copy: string
    readonly copied: string
    readonly failed: string
    readonly edit: string
    readonly editLabel: string
    readonly editHint: string
    /** The server refuses to replace the message. */
    readonly editLocked: string
    readonly cancel: string
    readonly resend: string
  }
  readonly voice: {
    readonly needsLive: string
    readonly backToChat: string
    readonly captions: string
    readonly microphone: string
  }
  /** Labels of the model. */
  readonly model: {
    readonly label: string
  }
  /** The page with pending and decided approvals. */
  readonly approvalsPage: {
    readonly title: string
    /** Returns to the chat that is open behind the page. */
    readonly back: string
    /** The title of the page that a link to one approval opens. */
    readonly linkTitle: string
    /** The link to the page. */
    readonly open: string
    /** The link from an approval to its chat. */
    readonly openChat: (title: string) => string
    readonly keys: string
  }
  /** Shows the other groups of suggestions. */
  readonly moreSuggestions: string
}
