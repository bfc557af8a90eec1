import type { Mode } from '../../settings/mode.ts'
import type { Theme } from '../../settings/theme.ts'
import type { ShortcutName } from '../../shell/shortcuts.ts'

/** A starting point of an empty chat. `text` is sent. */
interface Start {
  readonly title: string
  readonly explanation: string
  readonly text: string
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
  readonly modes?: readonly Mode[]
}

/** Labels of the page around the conversation. */
export interface ShellLabels {
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
    readonly names: Readonly<Record<Mode, string>>
    /** The modes in the words of developers. */
    readonly connection: string
    readonly connections: Readonly<Record<Mode, string>>
    readonly explanations: Readonly<Record<Mode, string>>
  }
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
    /** The browser does not allow notifications. */
    readonly notificationsBlocked: string
    readonly music: string
    readonly musicOff: string
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
    readonly cancel: string
    readonly resend: string
  }
  readonly voice: {
    readonly needsLive: string
    readonly backToChat: string
    readonly captions: string
    readonly microphone: string
    /** Shown while there is no connection. */
    readonly emulated: string
  }
  /** Labels of the model. */
  readonly model: {
    readonly label: string
    readonly emulated: string
  }
  /** Labels of the second approver of large payments. */
  readonly approver: {
    readonly is: string
    readonly how: string
    /** The title of the dialog that asks for the code. */
    readonly title: string
    readonly code: string
    readonly enter: string
    readonly wrong: string
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
  readonly starts: {
    readonly payment: Start
    readonly twoPeople: Start
    readonly talk: Omit<Start, 'text'>
  }
  /** Shows the other groups of suggestions. */
  readonly moreSuggestions: string
  readonly suggestions: readonly SuggestionGroup[]
}
