import type { ChatSummary } from 'adk-stream-protocol/client'
import { useLabels } from '../i18n/language.tsx'
import { Modal } from '../shell/modal.tsx'

interface DeleteDialogProps {
  readonly chat: ChatSummary | undefined
  readonly onDelete: (id: string) => void
  readonly onClose: () => void
}

/** Asks for confirmation, because the server deletes the chat too. */
export function DeleteDialog({ chat, onDelete, onClose }: DeleteDialogProps) {
  const { shell } = useLabels()
  const { chats } = shell
  return (
    <Modal open={chat !== undefined} label={chats.deleteTitle} className="dialog" onClose={onClose}>
      {chat && (
        <>
          <h2>{chats.deleteTitle}</h2>
          <p>{chats.deleteText(chat.title || chats.untitled)}</p>
          <div className="actions dialog-actions">
            <button type="button" className="outlined" onClick={onClose}>
              {shell.cancel}
            </button>
            <button
              type="button"
              className="primary danger"
              onClick={() => {
                onDelete(chat.id)
                onClose()
              }}
            >
              {chats.delete}
            </button>
          </div>
        </>
      )}
    </Modal>
  )
}
