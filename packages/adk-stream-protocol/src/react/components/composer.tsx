import type { ClipboardEvent, KeyboardEvent, ReactNode, Ref } from 'react'
import { useEffect, useId, useImperativeHandle, useLayoutEffect, useRef, useState } from 'react'

import { type UseComposerOptions, useComposer } from '../hooks/use-composer.ts'
import { useAdkLabels } from '../provider.tsx'

/** The methods of a composer for the page around it. */
interface ComposerHandle {
  focus(): void
  /** Appends a paragraph to the text and moves the focus to the input. */
  write(text: string): void
}

/**
 * Props of `Composer`.
 *
 * @inline
 */
export interface ComposerProps extends UseComposerOptions {
  readonly ref?: Ref<ComposerHandle> | undefined
  /** The id of the input. */
  readonly inputId?: string | undefined
  readonly placeholder?: string | undefined
  /** Whether the input has the focus when the composer appears. Default false. */
  readonly focusOnMount?: boolean | undefined
  /** Shown in the send button. Default: its label. */
  readonly sendIcon?: ReactNode
  /** Shown in the stop button. Default: its label. */
  readonly stopIcon?: ReactNode
  /** Shown above the input, for example previews of files. */
  readonly before?: ReactNode
  /** More controls, shown before the buttons. */
  readonly children?: ReactNode
  readonly onPaste?: ((event: ClipboardEvent<HTMLTextAreaElement>) => void) | undefined
}

/** The message input: Enter sends, or queues the message during a reply; a button stops the reply. Drafts survive a reload. */
export function Composer(props: ComposerProps) {
  const { ref, inputId, placeholder, focusOnMount = false, before, children, onPaste } = props
  const { composer: labels } = useAdkLabels()
  const composer = useComposer(props)
  const { inputRef, focus, write, text, setText, isRunning, queue } = composer
  const hintId = useId()
  useImperativeHandle(ref, () => ({ focus, write }))
  useEffect(() => {
    if (focusOnMount) focus()
  }, [focusOnMount, focus])
  const formRef = useFocusInputAfter(isRunning, focus)
  const keyboardFocus = useKeyboardFocus()
  const onKeyDown = (event: KeyboardEvent): void => {
    keyboardFocus.onKeyDown(event)
    if (isComposing(event)) return
    if (event.key === 'Escape' && queue.length > 0) {
      // Escape does nothing else, such as closing a panel.
      event.stopPropagation()
      composer.unqueue()
    } else if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault()
      // A held key may have been pressed elsewhere, before the focus moved here.
      if (!event.repeat) composer.submit()
    }
  }
  const interrupts = isRunning && props.onInterrupt !== undefined
  return (
    <form
      ref={formRef}
      className="adk-composer"
      data-running={isRunning}
      onSubmit={(event) => {
        event.preventDefault()
        composer.submit()
      }}
    >
      <Queue composer={composer} status={props.status} />
      <div className="adk-composer-box">
        {before}
        <textarea
          ref={inputRef}
          id={inputId}
          className="adk-composer-input"
          dir="auto"
          rows={1}
          value={text}
          aria-label={labels.message}
          aria-describedby={hintId}
          placeholder={placeholder}
          enterKeyHint="send"
          onChange={(event) => setText(event.target.value)}
          data-keyboard={keyboardFocus.isShown}
          onKeyDown={onKeyDown}
          onKeyUp={keyboardFocus.onKeyUp}
          onBlur={keyboardFocus.onBlur}
          onPaste={onPaste}
        />
        <div className="adk-composer-tools">
          {children}
          <p id={hintId} className="adk-composer-hint">
            {describeEnter({ isRunning, interrupts }, labels)}
          </p>
          <ComposerButtons {...props} composer={composer} />
        </div>
      </div>
    </form>
  )
}

interface ComposerButtonsProps extends Pick<ComposerProps, 'onStop' | 'stopIcon' | 'sendIcon'> {
  readonly composer: Pick<ReturnType<typeof useComposer>, 'isRunning' | 'isEmpty' | 'stop'>
}

function ComposerButtons({ composer, onStop, stopIcon, sendIcon }: ComposerButtonsProps) {
  const { composer: labels } = useAdkLabels()
  const { isRunning, isEmpty, stop } = composer
  const canStop = isRunning && onStop !== undefined
  return (
    <>
      {canStop && (
        <button
          // Never a submit button: Stop must not send the draft.
          type="button"
          className="adk-stop"
          aria-label={labels.stop}
          title={labels.stop}
          onClick={stop}
        >
          {stopIcon ?? labels.stop}
        </button>
      )}
      {/* While a reply runs, an empty draft needs no button: the one that stops takes its place. */}
      {!(canStop && isEmpty) && (
        <button
          type="submit"
          className="adk-send"
          aria-label={labels.send}
          title={labels.send}
          disabled={isEmpty}
        >
          {sendIcon ?? labels.send}
        </button>
      )}
    </>
  )
}

interface ComposerLabels {
  readonly enterSends: string
  readonly enterQueues: string
  readonly enterInterrupts: string
}

function describeEnter(
  { isRunning, interrupts }: { readonly isRunning: boolean; readonly interrupts: boolean },
  labels: ComposerLabels,
): string {
  if (!isRunning) return labels.enterSends
  return interrupts ? labels.enterInterrupts : labels.enterQueues
}

interface QueueProps {
  readonly composer: Pick<ReturnType<typeof useComposer>, 'queue' | 'unqueue'>
  readonly status: string | undefined
}

/** The queued messages. The status is there before its text, so that screen readers announce it. */
function Queue({ composer, status }: QueueProps) {
  const { composer: labels } = useAdkLabels()
  const { queue, unqueue } = composer
  return (
    <>
      <p className={queue.length > 0 ? 'adk-queue-note' : 'adk-hidden'} role="status">
        {queue.length > 0 && (status === 'error' ? labels.queueWaits : labels.queued)}
        {queue.length > 0 && status !== 'error' && (
          <span className="adk-key-hint"> {labels.unqueueKey}</span>
        )}
      </p>
      {queue.length > 0 && (
        <ul className="adk-queue" aria-label={labels.queue}>
          {queue.map(({ id, text, files }) => (
            <li key={id}>
              <span className="adk-queued" dir="auto">
                {text || files.map(({ filename = '' }) => filename).join(', ')}
              </span>
              <button type="button" className="adk-link" onClick={() => unqueue(id)}>
                {labels.unqueue}
              </button>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

const MODIFIERS = new Set(['Alt', 'Control', 'Meta', 'Shift'])

/**
 * Returns whether the input was reached by keyboard. `:focus-visible` cannot tell: it always matches text inputs. A key that is released
 * here but was pressed elsewhere, such as Tab, moved the focus.
 */
function useKeyboardFocus() {
  const [isShown, setShown] = useState(false)
  const pressed = useRef(new Set<string>())
  return {
    isShown,
    onKeyDown: ({ key }: KeyboardEvent): void => void pressed.current.add(key),
    onKeyUp: ({ key }: KeyboardEvent): void => {
      if (!pressed.current.delete(key) && !MODIFIERS.has(key)) setShown(true)
    },
    onBlur: (): void => {
      pressed.current.clear()
      setShown(false)
    },
  }
}

/** Moves the focus to the input when a reply ends and the button with the focus disappears. */
function useFocusInputAfter(isRunning: boolean, focus: () => void) {
  const formRef = useRef<HTMLFormElement>(null)
  const hadFocus = useRef(false)
  useLayoutEffect(() => {
    // The browser moves the focus to the body when the focused button is removed.
    if (!isRunning && hadFocus.current && document.activeElement === document.body) focus()
    hadFocus.current = false
  }, [isRunning, focus])
  useEffect(() => {
    const form = formRef.current
    const remember = ({ target }: FocusEvent): void => {
      hadFocus.current = target instanceof Element && target.matches('.adk-stop')
    }
    form?.addEventListener('focusin', remember)
    return () => form?.removeEventListener('focusin', remember)
  }, [])
  return formRef
}

/** Returns whether an input method handles this key. Enter then accepts the text and must not send the message. */
export function isComposing(event: KeyboardEvent): boolean {
  // Safari ends the composition before it reports the key. Only the key code 229 shows it.
  // oxlint-disable-next-line typescript/no-deprecated
  return event.nativeEvent.isComposing || event.keyCode === 229
}
