-- The tables and the procedure of mariadb.sh. Transfers between accounts keep their sum at zero.
CREATE DATABASE load_test;
USE load_test;
CREATE TABLE account (id INT PRIMARY KEY, balance BIGINT NOT NULL);
INSERT INTO account SELECT seq, 0 FROM seq_1_to_50;
CREATE TABLE entry (client INT, round INT, amount INT, text TEXT, PRIMARY KEY (client, round),
                    INDEX (amount), FULLTEXT (text));
DELIMITER //
CREATE PROCEDURE load_rows(IN client INT, IN rounds INT)
BEGIN
    DECLARE round INT DEFAULT 0;
    DECLARE amount INT;
    WHILE round < rounds DO
        SET round = round + 1, amount = (client * 7919 + round * 31) % 997;
        INSERT INTO entry VALUES (client, round, amount,
            CONCAT_WS(' ', MD5(round), REPEAT(CONCAT('word', amount, ' '), round % 20)));
        -- One statement locks the rows in the order of the key, so there is no deadlock.
        UPDATE account SET balance = balance + IF(id = 1 + round % 25, amount, -amount)
            WHERE id IN (1 + round % 25, 26 + (round + client) % 25);
    END WHILE;
END //
DELIMITER ;
