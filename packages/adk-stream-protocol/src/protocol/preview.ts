import type { Guard } from './guards.ts'
import { isArrayOf, isNumber, isObjectOf, isString, optional } from './guards.ts'

/** What a call would do, in a form that people read. A receipt has the same form and says what the call did. */
export interface Preview {
  /** The call as a headline: "Send $600.00 to Bob", or "Sent $600.00 to Bob" in a receipt. */
  readonly headline?: string | undefined
  /** What the person approves, for the label of the button: "$600.00". */
  readonly action?: string | undefined
  readonly lines?: readonly PreviewLine[] | undefined
  /** Values that the call changes. */
  readonly changes?: readonly PreviewChange[] | undefined
  /** A text that the call replaces. */
  readonly text?: PreviewText | undefined
  readonly picture?: PreviewPicture | undefined
  /** Why the call would fail. A call with this reason cannot be approved. In a receipt: why the call failed. */
  readonly blocked?: string | undefined
  /** The amount of the call, for the sum of all pending calls. */
  readonly amount?: PreviewAmount | undefined
}

/** @inline */
interface PreviewLine {
  readonly label: string
  readonly value: string
}

/** @inline */
interface PreviewChange {
  readonly label: string
  readonly before: string
  readonly after: string
}

/** @inline */
interface PreviewText {
  readonly label?: string | undefined
  readonly before: string
  readonly after: string
}

/** @inline */
interface PreviewPicture {
  /** A `data:` or `http(s):` URL. */
  readonly url: string
  /** A description for people who cannot see the picture. */
  readonly alt: string
}

/** @inline */
export interface PreviewAmount {
  readonly value: number
  /** The ISO code of the currency. */
  readonly currency: string
  /** How much there is to spend. */
  readonly available?: number | undefined
  /** Up to which amount the reader can approve an edited call alone. The form that edits the call says so. */
  readonly aloneUpTo?: number | undefined
}

/** A preview as it was shown. A decision names it by its digest. */
export interface ShownPreview extends Preview {
  /** SHA-256 over the canonical JSON of the preview. */
  readonly digest: string
}

const PREVIEW = {
  headline: optional(isString),
  action: optional(isString),
  lines: optional(isArrayOf(isObjectOf<PreviewLine>({ label: isString, value: isString }))),
  changes: optional(
    isArrayOf(isObjectOf<PreviewChange>({ label: isString, before: isString, after: isString })),
  ),
  text: optional(
    isObjectOf<PreviewText>({ label: optional(isString), before: isString, after: isString }),
  ),
  picture: optional(isObjectOf<PreviewPicture>({ url: isString, alt: isString })),
  blocked: optional(isString),
  amount: optional(
    isObjectOf<PreviewAmount>({
      value: isNumber,
      currency: isString,
      available: optional(isNumber),
      aloneUpTo: optional(isNumber),
    }),
  ),
}

export const isPreview: Guard<Preview> = isObjectOf<Preview>(PREVIEW)

export const isShownPreview: Guard<ShownPreview> = isObjectOf<ShownPreview>({
  ...PREVIEW,
  digest: isString,
})
